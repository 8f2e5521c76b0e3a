# Chooses the CUDA compiler: 1. the user's own CMAKE_CUDA_COMPILER or CUDACXX; 2. the wheel in the Python environment
# that runs the build; 3. what CMake finds by itself (PATH, CUDA_PATH, the usual system place).
# GRADCUDA_SYSTEM_CUDA=1 skips the second. The wheel goes first because its release is known to fit.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND NOT "$ENV{GRADCUDA_SYSTEM_CUDA}")
  execute_process(COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/find_wheel_nvcc.py"
    OUTPUT_VARIABLE _root OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(_root)
    set(CMAKE_CUDA_COMPILER "${_root}/bin/nvcc")
    string(APPEND CMAKE_CUDA_FLAGS_INIT " -L${_root}/lib") # nvcc.profile of 13.0 and 13.1 names lib64 only
  endif()
endif()
# machine code from Turing to Hopper, and PTX of the newest for what comes after
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90)
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "gradcuda: no CUDA compiler (pip's isolated build brings one); install the wheels of "
    "build.requires, or put nvcc on PATH, or set CUDACXX.")
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13.0)
  message(FATAL_ERROR "gradcuda needs CUDA 13.0 or newer, found ${CMAKE_CUDA_COMPILER_VERSION}")
endif()
