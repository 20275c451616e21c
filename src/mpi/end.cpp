#include "mpi/end.h"

#include <cstring>
#include <string>
#include <utility>
#include <variant>

namespace gpucholmod::mpi {
namespace {

struct Packer {
  Bytes bytes;
  void raw(const void* data, std::size_t count) { append(bytes, data, count); }
  template <class X>
  void put(const X& x) { raw(&x, sizeof x); }
  void put(const std::string& x) {
    put(x.size());
    raw(x.data(), x.size());
  }
};
struct Unpacker {
  const char* at;
  template <class X>
  X get() {
    X x;
    std::memcpy(&x, at, sizeof x);
    at += sizeof x;
    return x;
  }
  std::string text() {
    const std::size_t count = get<std::size_t>();
    at += count;
    return {at - count, count};
  }
};

}  // namespace

Bytes packed(const End& end) {
  Packer to;
  to.put(end.state);
  to.put(end.pivot);
  to.put(end.begun);
  if (end.error) {
    to.put(end.error->code());
    to.put(std::string(end.error->what()));
    to.put(end.error->fields().size());
    for (const auto& [name, value] : end.error->fields()) {
      to.put(name);
      to.put(value.index());
      if (const double* number = std::get_if<double>(&value)) to.put(*number);
      else to.put(std::get<std::string>(value));
    }
  }
  return std::move(to.bytes);
}

End unpacked(const Bytes& message) {
  Unpacker from{message.data()};
  End end;
  end.state = from.get<End::State>();
  end.pivot = from.get<index_t>();
  end.begun = from.get<bool>();
  if (end.state != End::State::failed) return end;
  const ErrorCode code = from.get<ErrorCode>();
  const std::string text = from.text();
  Error::Fields fields(from.get<std::size_t>());
  for (auto& [name, value] : fields) {
    name = from.text();
    if (from.get<std::size_t>() == 0) value = from.get<double>();
    else value = from.text();
  }
  end.error.emplace(code, text, fields);
  return end;
}

}  // namespace gpucholmod::mpi
