#pragma once

#include <algorithm>

#include "base/types.h"

/// The sources from which a factor is read and the sinks to which it is written, by pieces of columns: memory, or a
/// file (base/file.h).
namespace gpucholmod {

/// An n x n matrix to read. Several threads may read at once.
template <class S>
class Source {
 public:
  virtual ~Source() = default;
  /// Returns rows [first, last) of column j, in memory of the source or copied to `scratch`, which has room for these
  /// rows.
  virtual const S* column(index_t j, index_t first, index_t last, S* scratch) const = 0;
};

/// An n x n matrix to write. Several threads may write to different places at once.
template <class S>
class Sink {
 public:
  virtual ~Sink() = default;
  /// Writes rows [first, last) of column j.
  virtual void put(index_t j, index_t first, index_t last, const S* values) = 0;
  /// Writes zeros to rows [first, last) of column j.
  virtual void clear(index_t j, index_t first, index_t last) = 0;
};

template <class S>
class MemorySource : public Source<S> {
 public:
  MemorySource(const S* data, index_t ld) : data_(data), ld_(ld) {}
  const S* column(index_t j, index_t first, index_t, S*) const override { return data_ + j * ld_ + first; }

 private:
  const S* data_;
  index_t ld_;
};

template <class S>
class MemorySink : public Sink<S> {
 public:
  MemorySink(S* data, index_t n) : data_(data), n_(n) {}
  void put(index_t j, index_t first, index_t last, const S* values) override {
    std::copy(values, values + (last - first), data_ + j * n_ + first);
  }
  void clear(index_t j, index_t first, index_t last) override {
    std::fill(data_ + j * n_ + first, data_ + j * n_ + last, S(0));
  }

 private:
  S* data_;
  index_t n_;
};

}  // namespace gpucholmod
