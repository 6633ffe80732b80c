# Libraries from a folder instead of the system's: what `./gradus sysroot` collected, unpacked (lib/driver/sysroot.py).

set(GRADUS_SYSROOT "" CACHE PATH "A folder with usr/include, usr/lib and so on, where libraries are looked for first")
if(GRADUS_SYSROOT)
  if(NOT IS_DIRECTORY ${GRADUS_SYSROOT}/usr)
    message(FATAL_ERROR "GRADUS_SYSROOT: ${GRADUS_SYSROOT} holds no folder usr; './gradus' unpacks it where the variable "
                        "GRADUS_SYSROOT of the environment names the folder with the packages")
  endif()
  # Debian's folders by name too, for a CMake of another system does not know them.
  file(GLOB libraries ${GRADUS_SYSROOT}/usr/lib/*-linux-gnu)
  list(PREPEND CMAKE_PREFIX_PATH ${GRADUS_SYSROOT}/usr)
  foreach(folder IN LISTS libraries)
    list(APPEND CMAKE_PREFIX_PATH ${folder}/cmake)
    list(PREPEND CMAKE_LIBRARY_PATH ${folder})
  endforeach()
  add_link_options(-Wl,--disable-new-dtags)  # RPATH, which serves the libraries' own dependencies as well
endif()
