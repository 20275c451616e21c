#pragma once

#include <Rcpp.h>

#include <chrono>
#include <optional>

#include "base/types.h"
#include "rcpp_guard.h"

namespace gpucholmod {

/// What a call that may take long does now and then: heeds Ctrl-C and time limits, and shows how far it has come.
///
/// Where a bar is wanted, new_bar() in R/progress.R gives list(after, show) once the call has taken some time: after so
/// many seconds, show(done) begins a bar and moves it, and returns whether to go on. carry_out() in R/request.R takes
/// it away: a destructor here would have to call R while an error or an interrupt of R is on its way
/// (Rcpp::LongjumpException).
class Progress {
 public:
  explicit Progress(bool bar) : asked_(bar) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Throws what Rcpp turns into the interrupt, or the error of R, once everything here is destroyed.
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
  bool asked_;  ///< for a bar, which is not there yet
  std::optional<Rcpp::Function> show_;
};

}  // namespace gpucholmod
