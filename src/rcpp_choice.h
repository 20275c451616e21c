#pragma once

#include <Rcpp.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "base/error.h"
#include "modify/request.h"

namespace gpucholmod {

/// The names that R knows an enum's values by, one way and the other.
template <class Enum>
using Choices = std::initializer_list<std::pair<const char*, Enum>>;

template <class Enum>
Enum choice(const Rcpp::List& request, const char* key, Choices<Enum> values) {
  const std::string given = Rcpp::as<std::string>(request[key]);
  for (const auto& [text, value] : values)
    if (given == text) return value;
  throw Error(ErrorCode::bad_argument, std::string("unknown ") + key + " \"" + given + "\"",
              {{"argument", std::string(key)}});
}

template <class Enum>
std::string text(Enum value, Choices<Enum> values) {
  for (const auto& [text, candidate] : values)
    if (candidate == value) return text;
  return "";
}

inline const auto uplos = {std::pair("upper", Uplo::upper), {"lower", Uplo::lower}};
inline const auto precisions = {std::pair("double", Precision::double_), {"single", Precision::single}};

}  // namespace gpucholmod
