# Debian packages, by `make deb`: libplimsoll0, libplimsoll-dev and plimsoll (the program). Configure with the preset deb.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME plimsoll)
set(CPACK_PACKAGE_CONTACT "Plimsoll maintainers <maintainers@plimsoll.example>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL library development program)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(library_package libplimsoll${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library_package})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION
"tensor runtime that works inside a memory budget
 Plimsoll trains and runs models inside a memory budget you set: it says
 beforehand what a step takes, never passes the budget, and shows afterwards
 where the memory was. This package has the shared library.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libplimsoll-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library_package} (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
"tensor runtime that works inside a memory budget (development files)
 Plimsoll trains and runs models inside a memory budget you set. This package
 has the headers, the CMake and pkg-config files, and examples.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME plimsoll)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
"train and run models inside a memory budget
 The program of the Plimsoll runtime: it trains models from files, says
 beforehand what that takes, plans and replays memory, and turns recorded
 traces into reports.")

# Each package brings its licence and its changes.
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH is followed.
foreach(package_of library:${library_package} development:libplimsoll-dev program:plimsoll)
  string(REPLACE ":" ";" pair ${package_of})
  list(GET pair 0 component)
  list(GET pair 1 package)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/debian/${package})
  file(MAKE_DIRECTORY ${folder})
  file(WRITE ${folder}/changelog "plimsoll (${PROJECT_VERSION}) unstable; urgency=medium\n\n  * See CHANGELOG.md of the sources.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${now}\n")
  execute_process(COMMAND gzip -9nkf ${folder}/changelog COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE ${folder}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: plimsoll

Files: *
Copyright: 2026 the Plimsoll maintainers
License: Apache-2.0
 On Debian systems the full text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.\n")
  install(FILES ${folder}/changelog.gz ${folder}/copyright DESTINATION share/doc/${package} COMPONENT ${component})
endforeach()
include(CPack)
