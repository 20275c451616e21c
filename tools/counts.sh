# shellcheck shell=sh
# Sourced by test.sh and platforms.sh, which set $scratch: sums of what has passed, failed and been skipped.

passed=0 failed=0 skipped=0

# Adds "N passed, N failed, N skipped" to the sums.
count() { # $1 passed, $2 failed, $3 skipped, $4 of what
  echo "$4: $1 passed, $2 failed, $3 skipped"
  passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# The same for one test, with its log shown if it failed.
count_one() { # $1 exit status, $2 log, $3 name
  if [ "$1" -eq 0 ]; then
    count 1 0 0 "$3"
  else
    cat "$2"
    count 0 1 0 "$3"
  fi
}

# The same for a log whose last line has the numbers; it is shown if something failed, or there are none.
count_last_line() { # $1 exit status, $2 log, $3 name
  numbers=$(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$2")
  if [ "$1" -ne 0 ] || [ -z "$numbers" ]; then cat "$2"; fi
  # shellcheck disable=SC2086  # three numbers
  set -- "$3" ${numbers:-0 1 0}
  count "$2" "$3" "$4" "$1"
}

# The sum of the numbers that a sed script finds in the log of the core's tests.
core_sum() { sed -n "$1" "$scratch/core" | awk '{ sum += $1 } END { print sum + 0 }'; }

# The same for the core's tests, whose log is $scratch/core. A run that exits with an error has failed, whatever it printed: a leak is
# found after the last test has passed.
count_core() { # $1 exit status, $2 name
  bad=0
  if [ "$1" -ne 0 ]; then
    cat "$scratch/core"
    bad=$(grep -c '^\[  FAILED  \] .* ms)$' "$scratch/core" || :)
    [ "$bad" -gt 0 ] || bad=1
  fi
  good=$(core_sum 's/^\[  PASSED  \] \([0-9]*\) tests\{0,1\}\.$/\1/p')
  [ "$good" -gt 0 ] || [ "$bad" -gt 0 ] || bad=1
  count "$good" "$bad" "$(core_sum 's/^\[  SKIPPED \] \([0-9]*\) tests\{0,1\}[.,].*$/\1/p')" "$2"
}

# The R tests on the package of a library.
r_tests() { # $1 name, $2 the library, $3 pattern of the files' names, where there is no GPU; none: all
  stage "testthat, $1"
  rm -f "$scratch/counts"
  (cd "$root" && R_LIBS="$2${R_LIBS:+:$R_LIBS}" NOT_CRAN=true Rscript tools/testthat.R "$scratch/counts" "${3:-}") || :
  good=0 bad=1 left=0
  if [ -s "$scratch/counts" ]; then read -r good bad left <"$scratch/counts"; fi
  count "$good" "$bad" "$left" "testthat, $1"
}

finish() {
  stage ""
  printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  [ "$failed" -eq 0 ]
  exit
}
