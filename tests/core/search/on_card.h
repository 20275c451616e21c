#pragma once

#include <gtest/gtest.h>

#include "search.h"
#include "../cuda/factor_call.h"

namespace gpucholmod::test {

/// Modifies a factor on a GPU: as a handle, in place and not, on one GPU and as if on two, and by method "stream"; in
/// both precisions.
class OnACard : public Subject {
 public:
  std::string begin(const Stored<double>& R, Random& random) override {
    const auto one_of = [&](int count) { return int(random.uniform() * count); };
    precision_ = one_of(5) == 0 ? Precision::single : Precision::double_;
    in_place_ = one_of(2) == 0;
    streams_ = one_of(6) == 0;
    const int ranks = !streams_ && one_of(5) == 0 ? 2 : 1;
    streamed_ = in(precision_, R);
    if (!streams_)
      f_ = cuda::upload(R.data(), R.cols(), Uplo::upper, precision_, R.cols() + 8,
                        std::vector<int>(std::size_t(ranks), cuda::status(false).device));
    return std::string(streams_ ? "stream" : in_place_ ? "in place" : "handle") + ", ranks " + std::to_string(ranks) +
           (precision_ == Precision::single ? ", single" : "");
  }
  Precision precision() const override { return precision_; }
  Stored<double> get() const override { return streams_ ? streamed_ : download(*f_); }
  bool modify(const Stored<double>& V, index_t removed) override {
    if (streams_) return stream(V, removed);
    Task t = task(*f_, V.cols(), Sign::update);
    t.removed = removed;
    return change(
        [&](Factor* made, std::atomic<bool>& begun) { return f_->modify(V.data(), t, made, no_poll, begun).pivot; });
  }

  bool does_all() const override { return !streams_; }
  bool insert(index_t at, const Stored<double>& X) override {
    return change([&](Factor* made, std::atomic<bool>& begun) {
      return f_->insert(at, X.data(), X.cols(), {}, made, no_poll, begun);
    });
  }
  void remove(const std::vector<index_t>& gone) override {
    change([&](Factor* made, std::atomic<bool>& begun) {
      f_->remove(gone, {}, made, no_poll, begun);
      return index_t(-1);
    });
  }
  void solve(TriangularSolve which, Stored<double>& B) const override { f_->solve(which, B.data(), B.cols()); }

 private:
  template <class F>
  bool change(F&& f) {
    Factor made;
    std::atomic<bool> begun{false};
    const index_t pivot = f(in_place_ ? nullptr : &made, begun);
    if (pivot >= 0) return false;
    if (!in_place_) f_ = std::move(made);
    return true;
  }
  bool stream(const Stored<double>& V, index_t removed) {
    Request request;
    request.backend = Backend::cuda;
    request.method = Method::stream;
    request.precision = precision_;
    request.threads = 2;
    request.n = V.rows();
    request.k = V.cols();
    request.removed = removed;
    Stored<double> out(request.n, request.n);
    if (gpucholmod::modify(Place<double>::memory(streamed_.data(), out.data()), V.data(), request, no_poll).pivot >= 0)
      return false;
    streamed_ = out;
    return true;
  }

  Precision precision_ = Precision::double_;
  bool in_place_ = false, streams_ = false;
  Factor f_;
  Stored<double> streamed_;
};

}  // namespace gpucholmod::test
