# The page of reports: web/ is bundled into one file and embedded as plimsoll/observe's page_template(). That needs Node
# and npm; without them, or when npm can fetch nothing, the library is built without the page and says so when asked.
find_program(PLIMSOLL_NODE NAMES node nodejs)
find_program(PLIMSOLL_NPM npm)
set(page_source ${CMAKE_CURRENT_BINARY_DIR}/page/page_template.cc)
file(GLOB page_inputs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/*.json ${PROJECT_SOURCE_DIR}/web/*.mjs ${PROJECT_SOURCE_DIR}/web/src/*)
# The stamp is written only when the page was made, so that the next build tries again when it was not.
add_custom_command(
  OUTPUT ${page_source} ${CMAKE_CURRENT_BINARY_DIR}/page/made
  COMMAND ${CMAKE_COMMAND} -DNODE=${PLIMSOLL_NODE} -DNPM=${PLIMSOLL_NPM} -DWEB=${PROJECT_SOURCE_DIR}/web
          -DOUT=${CMAKE_CURRENT_BINARY_DIR}/page -P ${PROJECT_SOURCE_DIR}/cmake/make_page.cmake
  DEPENDS ${page_inputs} ${PROJECT_SOURCE_DIR}/cmake/make_page.cmake
  COMMENT "Bundling the page of reports" VERBATIM)
