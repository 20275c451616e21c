#pragma once

#include <Rcpp.h>

#include <chrono>
#include <optional>

#include "modify/request.h"
#include "rcpp_guard.h"

namespace gpucholmod {

/// What a call that may take long does now and then: heeds Ctrl-C and time limits, and shows how far it has come.
///
/// `request` comes from with_progress() in R/progress.R. Its field `progress` is absent where nothing is to be shown,
/// or list(after, show): after so many seconds, show(done) begins a bar and moves it; it returns whether to go on.
/// The bar belongs to the frame of with_progress(), which takes it away. A destructor here would have to call R while
/// an error or an interrupt of R is on its way (Rcpp::LongjumpException).
class Progress {
 public:
  explicit Progress(const Rcpp::List& request) {
    if (!request.containsElementNamed("progress")) return;
    const Rcpp::List progress = request["progress"];
    next_show_ = Rcpp::as<double>(progress["after"]);
    show_.emplace(SEXP(progress["show"]));
  }
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
    }
    if (show_ && now >= next_show_) {
      if (!Rcpp::as<bool>((*show_)(done))) show_.reset();
      next_show_ = now + seconds_between_shows;
    }
  }

  const Clock::time_point start_ = Clock::now();
  double next_check_ = 0, next_show_ = 0;  ///< seconds since start_
  std::optional<Rcpp::Function> show_;
};

}  // namespace gpucholmod
