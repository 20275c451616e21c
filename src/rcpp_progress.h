#pragma once

#include <Rcpp.h>

#include <chrono>
#include <optional>

#include "base/types.h"
#include "rcpp_guard.h"

namespace gpucholmod {

/// Heeds Ctrl-C and time limits in a call that may take long, and shows how far the call has come.
///
/// If a bar is wanted, new_bar() in R/progress.R returns list(after, show) once the call has taken some time. When the
/// call has taken `after` seconds, show(done) begins a bar. Later calls of show(done) move the bar; show(done) returns
/// whether to go on. carry_out() in R/request.R removes the bar: a destructor here would have to call R while an error
/// or an interrupt of R is on its way (Rcpp::LongjumpException).
class Progress {
 public:
  explicit Progress(bool bar) : asked_(bar) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Returns the function that is called now and then. It throws what Rcpp turns into R's interrupt or error once
  /// everything here is destroyed.
  Poll poll() {
    return [this](double done) { look(done); };
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double seconds_between_checks = 0.05, seconds_between_shows = 0.1;

  void look(double done) {
    const double now = std::chrono::duration<double>(Clock::now() - start_).count();
    if (now >= next_check_) {
      heed_user();
      next_check_ = now + seconds_between_checks;
      if (asked_ && now >= seconds_between_checks) {
        asked_ = false;
        const Rcpp::List bar = in_r("new_bar")();
        next_show_ = Rcpp::as<double>(bar["after"]);
        show_.emplace(SEXP(bar["show"]));
      }
    }
    if (show_ && now >= next_show_) {
      if (!Rcpp::as<bool>((*show_)(done))) show_.reset();
      next_show_ = now + seconds_between_shows;
    }
  }

  const Clock::time_point start_ = Clock::now();
  double next_check_ = 0, next_show_ = 0;  ///< seconds since start_
  bool asked_;  ///< True while a bar that is wanted has not been made
  std::optional<Rcpp::Function> show_;
};

}  // namespace gpucholmod
