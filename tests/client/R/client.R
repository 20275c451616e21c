# Robust adaptive Metropolis (Vihola 2012): proposals x + S u, where S S' is changed by one column after each so that a
# share `target` of them is accepted. The target is normal with mean 0 and precision crossprod(B). Chains run in threads
# of their own, if there are several seeds.
ram <- function(B, steps, target = 0.234, seeds = 1L)
  .Call(C_ram, B, as.integer(steps), as.double(target), as.integer(seeds))

# The factor of A + V diag(weights) V', R upper.
client_update <- function(R, V, weights = NULL, lower = FALSE) .Call(C_update, R, V, weights, lower)

# The code and message of an update that cannot be done.
client_refused <- function(R, V, weights) .Call(C_refused, R, V, weights)

# Every function that the header names and gpucholmod has.
client_names <- function() .Call(C_names)

# Loads the table of a version that is so much higher, and has so many bytes more.
client_load_other <- function(version, bytes) .Call(C_load_other, as.integer(version), as.integer(bytes))
