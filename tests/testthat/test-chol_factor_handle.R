# What a handle is: a reference that can lose what it refers to.

expect_invalid <- function(call, reason) {
  error <- expect_error(call, class = "gpucholmod_invalid_factor")
  expect_s3_class(error, "gpucholmod_error")
  expect_identical(error$reason, reason)
}

# Every use of a handle.
uses <- list(as.matrix, copy_factor, drift, logdet, determinant, chol2inv, diag, function(f) solve(f),
             function(f) solve(f, 1:3), function(f) solve_forward(f, 1:3), function(f) solve_back(f, 1:3),
             function(f) cholupdate_gpu(f, 1:3), function(f) cholupdate_gpu(f, 1:3, in_place = TRUE))

test_that("a handle that cannot be used says why, whatever is asked of it", {
  for (case in list(c("live", "restored"), c("freed", "freed"), c("half_modified", "half_modified"))) {
    for (use in uses) expect_invalid(use(handle_of_nothing(case[[1]])), case[[2]])
  }
})

test_that("a call that leaves a factor half modified gives it up by itself", {
  f <- chol_factor(diag(3), "cpu")
  request <- gpucholmod:::new_request(downdate = TRUE, backend = 1L)
  done <- gpucholmod:::rcpp_factor_modify(f, f, c(0, 0, 2), request, FALSE)
  expect_identical(done$pivot, 3L)
  expect_identical(f$status, "half_modified")
  expect_invalid(as.matrix(f), "half_modified")
})

test_that("a handle whose fields are locked is refused before its factor changes", {
  f <- chol_factor(diag(3), "cpu")
  refused <- function(fields, call) {
    for (field in fields) {
      lockBinding(field, f)
      expect_invalid(call(), "damaged")
      unlockBinding(field, f)
    }
    expect_identical(as.matrix(f), diag(3))
  }
  fields <- c("status", "modifications", "error", "trace", "trace_error")
  refused(fields, function() cholupdate_gpu(f, 1:3, in_place = TRUE))
  refused(c(fields, "n", "capacity", "bytes", "dimnames"), function() choldelete_gpu(f, 2, in_place = TRUE))
  lockBinding("modifications", f)
  expect_identical(as.matrix(cholupdate_gpu(f, 0:2)), cholupdate_gpu(diag(3), 0:2, backend = "cpu"))
  unlockBinding("modifications", f)
  cholupdate_gpu(f, 0:2, in_place = TRUE)
  expect_identical(as.matrix(f), cholupdate_gpu(diag(3), 0:2, backend = "cpu"))

  batch <- chol_batch(array(diag(2), c(2, 2, 3)), "cpu")
  lockBinding("status", batch)
  expect_invalid(cholupdate_batch(batch, 1:2, in_place = TRUE), "damaged")
  expect_identical(batch[[3]], diag(2))
})

test_that("a handle that cannot be used can be printed, and freed again", {
  for (status in c("live", "freed", "half_modified")) {
    f <- handle_of_nothing(status)
    expect_output(print(f), "cannot be used")
    expect_output(str(f), "cannot be used")
    expect_match(format(f), "^<gpu_factor> 3 x 3, upper, double precision, cannot be used: .*")
    expect_identical(dim(f), c(3L, 3L))
    expect_identical(colnames(f), c("a", "b", "c"))
    expect_null(free(f))
  }
})

test_that("what is no handle is refused", {
  expect_identical(expect_error(drift(diag(2)), class = "gpucholmod_bad_argument")$argument, "f")
})

test_that("where there is too little memory, it is tried once more after a garbage collection", {
  full <- function(times) {
    tries <- 0
    function() {
      tries <<- tries + 1
      if (tries <= times) gpucholmod:::stop_gpucholmod("out_of_memory", "full", list(needed = 2, available = tries))
      tries
    }
  }
  collected <- FALSE
  reg.finalizer(new.env(), function(e) collected <<- TRUE)
  expect_identical(gpucholmod:::with_room(full(0)), 1)
  expect_identical(gpucholmod:::with_room(full(1)), 2)
  expect_true(collected)
  error <- expect_error(gpucholmod:::with_room(full(2)), class = "gpucholmod_out_of_memory")
  expect_identical(error$available, 2)
  other <- function() gpucholmod:::stop_gpucholmod("cuda_failure", "other")
  expect_error(gpucholmod:::with_room(other), class = "gpucholmod_cuda_failure")
})

# What somebody may put where a field of a handle was, or in place of one.
odd_values <- list(NULL, NA, -1, 3, 4L, "x", c("a", "b"), list(), quote(x), function(x) x, globalenv(), diag(2),
                   methods::new("externalptr"))

test_that("a handle that was changed by hand works, or has an error of its own", {
  R <- chol(diag(3) + 1)
  all_uses <- c(uses, function(f) cholupdate_gpu(f, 1:3, z = 1:3, y = 1), function(f) cholinsert_gpu(f, c(1, 1, 1, 9)),
                function(f) choldelete_gpu(f, 2, in_place = TRUE), function(f) cholshift_gpu(f, 1, 3), dim, free,
                format, function(f) solve_modified(f, 1:3, 1:3), function(f) write_factor(f, tempfile()), dimnames)
  for (field in ls(chol_factor(R, "cpu"))) {
    for (value in odd_values) {
      for (use in all_uses) {
        f <- chol_factor(R, "cpu")
        assign(field, value, envir = f)
        found <- tryCatch(use(f), error = identity)
        if (inherits(found, "error")) expect_s3_class(found, "gpucholmod_error")
      }
    }
  }
  f <- chol_factor(R, "cpu")
  f$pointer <- chol_batch(array(R, c(3, 3, 2)), "cpu")$pointer
  for (use in uses) expect_invalid(use(f), "damaged")
  expect_output(print(f), "changed by hand")
  for (object in list(list(), 3, new.env())) {
    class(object) <- c("cpu_factor", "chol_factor")
    for (use in all_uses) {
      found <- tryCatch(use(object), error = identity)
      if (inherits(found, "error")) expect_s3_class(found, "gpucholmod_error")
    }
  }
})

test_that("a batch that was changed by hand works, or has an error of its own", {
  R <- array(diag(3), c(3, 3, 2))
  batch_uses <- list(as.array, copy_factor, logdet, diag, function(f) f[[1]], function(f) solve(f, 1:3), dim, length,
                     free, format, function(f) cholupdate_batch(f, 1:3),
                     function(f) cholupdate_batch(f, 1:3, in_place = TRUE))
  for (field in ls(chol_batch(R, "cpu"))) {
    for (value in odd_values) {
      for (use in batch_uses) {
        f <- chol_batch(R, "cpu")
        assign(field, value, envir = f)
        found <- tryCatch(use(f), error = identity)
        if (inherits(found, "error")) expect_s3_class(found, "gpucholmod_error")
      }
    }
  }
  f <- chol_batch(R, "cpu")
  f$pointer <- chol_factor(diag(3), "cpu")$pointer
  for (use in batch_uses[1:6]) expect_invalid(use(f), "damaged")
})

at_each_home("assignment copies the handle, copy_factor() the data", {
  R <- well_conditioned(100)
  f <- keep(R)
  g <- f
  h <- copy_factor(f)
  cholupdate_gpu(f, 1:100, in_place = TRUE)
  expect_identical(as.matrix(g), as.matrix(f))
  expect_identical(as.matrix(h), R)
  expect_identical(drift(h), 0)
  i <- copy_factor(f)
  expect_identical(drift(i), drift(f))
  expect_identical(i$modifications, 1L)
  free(f)
  expect_invalid(as.matrix(g), "freed")
  expect_identical(as.matrix(h), R)
})

at_each_home("print, format and str say what it is", {
  f <- keep(diag(4), "lower", "single")
  expect_output(print(f), sprintf("<%s_factor> 4 x 4, lower, single precision.*%s.*factorisation: 0",
                                   if (home == "cpu") "cpu" else "gpu",
                                   if (home == "cpu") "ordinary memory" else "on device"))
  cholupdate_gpu(f, 1:4, in_place = TRUE)
  expect_output(str(f), "modifications since the last factorisation: 1, drift")
  expect_length(format(f), 1)
})

at_each_home("a handle from a file says so", {
  file <- tempfile(fileext = ".rds")
  on.exit(unlink(file))
  f <- keep(diag(3))
  saveRDS(f, file)
  g <- readRDS(file)
  for (use in uses) expect_invalid(use(g), "restored")
  expect_output(print(g), "file or another process")
  expect_identical(as.matrix(f), diag(3))
})

test_that("in a forked process a handle cannot be used, and the parent's stays as it is", {
  skip_on_os("windows")
  skip_without_gpu()
  f <- gpu_factor(diag(3))
  batch <- chol_batch(array(diag(3), c(3, 3, 2)), "cuda")
  more <- list(function(f) gpu_factor(diag(3)), function(f) cholinsert_gpu(f, c(9, 1, 1, 1), at = 1),
               function(f) cholinsert_gpu(f, c(9, 1, 1, 1), at = 1, in_place = TRUE), function(f) choldelete_gpu(f, 1),
               function(f) cholshift_gpu(f, 1, 3, in_place = TRUE), function(f) solve_modified(f, 1:3, 1:3))
  batch_uses <- list(as.array, copy_factor, logdet, diag, function(f) f[[1]], function(f) solve(f, 1:3),
                     function(f) cholupdate_batch(f, 1:3), function(f) cholupdate_batch(f, 1:3, in_place = TRUE))
  child <- parallel::mcparallel({
    reason_of <- function(use, f) tryCatch(use(f), gpucholmod_backend_unavailable = function(e) e$reason)
    asked <- c(lapply(c(uses[-3], more), reason_of, f), lapply(batch_uses, reason_of, batch))
    printed <- utils::capture.output(print(f))
    free(f)
    free(batch)
    rm(f, batch)
    gc()
    list(asked, printed)
  })
  answer <- parallel::mccollect(child)[[1]]
  expect_true(all(vapply(answer[[1]], identical, TRUE, "forked")))
  expect_identical(batch[[2]], diag(3))
  expect_match(answer[[2]][[1]], "gpu_factor")
  expect_identical(as.matrix(f), diag(3))
  expect_equal(as.matrix(cholupdate_gpu(f, 1:3)), chol(diag(3) + tcrossprod(1:3)), tolerance = 1e-14)
})

test_that("in a forked process a factor in ordinary memory is a copy", {
  skip_on_os("windows")
  f <- chol_factor(diag(3), "cpu")
  child <- parallel::mcparallel({
    cholupdate_gpu(f, 1:3, in_place = TRUE)
    as.matrix(f)
  })
  expect_equal(parallel::mccollect(child)[[1L]], chol(diag(3) + tcrossprod(1:3)), tolerance = 1e-14)
  expect_identical(as.matrix(f), diag(3))
})

test_that("R knows of a factor in ordinary memory, and collects those that nobody refers to", {
  used <- function() sum(gc()[, 2L])
  R <- diag(1000)
  before <- used()
  f <- chol_factor(R, "cpu")
  expect_gt(used(), before + 7)
  for (i in 1:40) g <- cholupdate_gpu(f, rep(0.01, 1000))
  gc()
  expect_lt(used(), before + 7 + 3 * 8)
  rm(f, g)
  gc()
  expect_lt(used(), before + 1)
})

free_memory <- function() gpu_info()$devices$memory_free[[match(TRUE, gpu_info(FALSE)$devices$usable)]]

test_that("memory is given back by free(), and by the garbage collector", {
  skip_without_gpu()
  gc()
  warm <- gpu_factor(diag(2))
  n <- 5000
  bytes <- 8 * n^2
  R <- diag(n)
  before <- free_memory()
  f <- gpu_factor(R)
  expect_lt(free_memory(), before - 0.9 * bytes)
  expect_gte(f$bytes, bytes)
  free(f)
  expect_gt(free_memory(), before - 0.6 * bytes)
  f <- gpu_factor(R)
  cholupdate_gpu(f, rep(0.1, n))
  rm(f)
  gc()
  expect_gt(free_memory(), before - 0.6 * bytes)
  expect_identical(as.matrix(warm), diag(2))
})

test_that("a full GPU says how much was needed; what nobody refers to is collected first", {
  skip_on_cran()
  skip_without_gpu()
  n <- 12000
  f <- gpu_factor(diag(n))
  enough <- ceiling(1.2 * max(gpu_info()$devices$memory_total) / f$bytes)
  kept <- list()
  error <- expect_error(for (i in seq_len(enough)) kept[[i]] <- copy_factor(f), class = "gpucholmod_out_of_memory")
  expect_gte(error$needed, 8 * n^2)
  expect_lt(error$available, error$needed)
  expect_identical(diag(kept[[length(kept)]]), rep(1, n))
  rm(kept)
  for (i in seq_len(enough)) copy_factor(f)
  first <- c(1, numeric(n - 1))
  for (i in seq_len(enough)) cholupdate_gpu(f, first)
  expect_identical(diag(f), rep(1, n))
})

test_that("copy_factor() and free() of what is no handle are errors of their own", {
  for (use in list(copy_factor, free)) {
    expect_identical(expect_error(use(3), class = "gpucholmod_bad_argument")$argument, "x")
  }
})

test_that("the library may be unloaded while there are handles, and threads that wait", {
  skip_on_cran()
  code <- "library(gpucholmod); control <- cholupdate_control(threads = 2)
    x <- cholupdate_gpu(diag(2, 600), matrix(0.01, 600, 40), control = control)
    pointer <- chol_factor(diag(2), \"cpu\")$pointer; path <- find.package(\"gpucholmod\")
    unloadNamespace(\"gpucholmod\"); library.dynam.unload(\"gpucholmod\", path); rm(pointer); for (i in 1:2) gc()
    cat(\"alive\")"
  libs <- paste(.libPaths(), collapse = .Platform$path.sep)
  out <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE,
                 env = paste0("R_LIBS=", shQuote(libs)))
  expect_identical(out, "alive")
})
