#pragma once

#include <Rcpp.h>

#include "modify/request.h"
#include "rcpp_choice.h"

namespace gpucholmod {

inline const auto backends = {std::pair("auto", Backend::automatic), {"cpu", Backend::cpu}, {"cuda", Backend::cuda}};
inline const auto methods = {std::pair("auto", Method::automatic), {"reference", Method::reference},
                             {"blocked", Method::blocked}, {"refactor", Method::refactor}, {"panel", Method::panel}, {"stream", Method::stream},
                             {"resident", Method::resident}};

inline const auto instruction_sets = {std::pair("auto", Instructions::automatic), {"plain", Instructions::plain},
                                      {"avx2", Instructions::avx2}, {"avx512", Instructions::avx512}};

/// The request that R/cholupdate_gpu.R builds, for an n x n factor and an n x k V.
inline Request to_request(const Rcpp::List& given, index_t n, index_t k) {
  Request request;
  request.n = n;
  request.k = k;
  request.sign = Rcpp::as<bool>(given["downdate"]) ? Sign::downdate : Sign::update;
  request.uplo = choice(given, "uplo", uplos);
  request.precision = choice(given, "precision", precisions);
  request.backend = choice(given, "backend", backends);
  request.method = choice(given, "method", methods);
  const Rcpp::List control = given["control"];
  request.loop_order = choice(control, "loop_order", {std::pair("A", LoopOrder::a), {"B", LoopOrder::b}});
  request.panel.blocks_per_kernel = Rcpp::as<int>(control["blocks_per_kernel"]);
  request.panel.threads_per_block = Rcpp::as<int>(control["threads_per_block"]);
  request.panel.elements_per_thread = Rcpp::as<int>(control["elements_per_thread"]);
  request.panel.panel_rows = Rcpp::as<int>(control["panel_rows"]);
  request.device_memory = Rcpp::as<double>(control["device_memory"]);
  request.threads = Rcpp::as<int>(control["threads"]);
  request.instructions = choice(control, "instructions", instruction_sets);
  request.optimised_blas = Rcpp::as<bool>(control["optimised_blas"]);
  request.timeline = Rcpp::as<bool>(control["timeline"]);
  return request;
}

/// A row for each entry: stage, panel (from 1), begin and end in seconds.
inline Rcpp::DataFrame to_data_frame(const std::vector<Timeline::Entry>& entries) {
  const char* const stages[] = {"fill", "send", "modify", "fetch", "empty"};
  const int count = int(entries.size());
  Rcpp::CharacterVector stage(count);
  Rcpp::IntegerVector panel(count);
  Rcpp::NumericVector begin(count), end(count);
  for (int i = 0; i < count; ++i) {
    stage[i] = stages[int(entries[i].stage)];
    panel[i] = entries[i].panel + 1;
    begin[i] = entries[i].begin;
    end[i] = entries[i].end;
  }
  using Rcpp::_;
  return Rcpp::DataFrame::create(_["stage"] = stage, _["panel"] = panel, _["begin"] = begin, _["end"] = end,
                                 _["stringsAsFactors"] = false);
}

/// What R/last_cholupdate.R remembers of a run.
inline Rcpp::List to_report(const Request& what, const Outcome& done) {
  using Rcpp::_;
  Rcpp::List report = Rcpp::List::create(
      _["n"] = double(what.n), _["k"] = double(what.k), _["downdate"] = what.sign == Sign::downdate,
      _["backend"] = text(done.backend, backends), _["method"] = text(done.method, methods),
      _["precision"] = text(done.precision, precisions), _["device"] = done.device,
      _["seconds"] = done.seconds, _["panels"] = double(done.panels),
      _["device_bytes_peak"] = done.device_bytes_peak, _["pinned"] = done.pinned,
      _["pivot"] = int(done.pivot + 1), _["blocks"] = double(done.blocks), _["fallbacks"] = double(done.fallbacks),
      _["rescalings"] = double(done.rescalings), _["threads"] = done.threads,
      _["instructions"] = done.instructions == Instructions::automatic ? "" : text(done.instructions, instruction_sets));
  if (what.timeline) report["timeline"] = to_data_frame(done.timeline);
  return report;
}

}  // namespace gpucholmod
