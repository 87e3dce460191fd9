// A target needs a source of its own to have a precompiled header that others use.
