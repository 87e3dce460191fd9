# What is installed, in the components that packages are made of: library, development, program.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll)

install(TARGETS plimsoll EXPORT plimsoll-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
include(cmake/public_headers.cmake)
public_headers(public)
foreach(header ${public})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder} COMPONENT development)
endforeach()
install(EXPORT plimsoll-targets NAMESPACE plimsoll:: DESTINATION ${package_folder} COMPONENT development)
configure_package_config_file(cmake/plimsoll-config.cmake.in plimsoll-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(plimsoll-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/plimsoll-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/plimsoll-config-version.cmake
        DESTINATION ${package_folder} COMPONENT development)
file(RELATIVE_PATH prefix_from_pkgconfig /to/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /to/prefix)  # So that the tree can be moved.
string(REGEX REPLACE "/$" "" prefix_from_pkgconfig ${prefix_from_pkgconfig})
configure_file(cmake/plimsoll.pc.in plimsoll.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/plimsoll.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libplimsoll-dev/examples COMPONENT development)

# The program writes its own manual page and completions: what they name is what it takes.
set(shell_files ${CMAKE_CURRENT_BINARY_DIR}/shell)
file(MAKE_DIRECTORY ${shell_files})
add_custom_command(
  OUTPUT ${shell_files}/plimsoll.1.gz ${shell_files}/plimsoll ${shell_files}/_plimsoll ${shell_files}/plimsoll.fish
  COMMAND plimsoll_program manual | gzip -9n >${shell_files}/plimsoll.1.gz
  COMMAND plimsoll_program completions bash >${shell_files}/plimsoll
  COMMAND plimsoll_program completions zsh >${shell_files}/_plimsoll
  COMMAND plimsoll_program completions fish >${shell_files}/plimsoll.fish
  DEPENDS plimsoll_program COMMENT "Writing the manual page and completions")
add_custom_target(plimsoll_shell_files ALL DEPENDS ${shell_files}/plimsoll.1.gz)
install(TARGETS plimsoll_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(FILES ${shell_files}/plimsoll.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES ${shell_files}/plimsoll DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
install(FILES ${shell_files}/_plimsoll DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT program)
install(FILES ${shell_files}/plimsoll.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
