# CRAN's machines allow two threads.
if (!nzchar(Sys.getenv("OMP_THREAD_LIMIT"))) Sys.setenv(OMP_THREAD_LIMIT = "2")
