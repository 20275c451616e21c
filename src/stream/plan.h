#pragma once

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/tuning.h"
#include "block_columns/pass.h"

namespace gpucholmod::stream {

/// A panel: strips [first, end) of the factor, from row 0 down to the panel's last diagonal block; ld x columns on the
/// device.
struct Panel {
  int first, end;

  index_t column() const { return index_t(first) * block_columns::STRIP; }
  index_t columns() const { return index_t(end - first) * block_columns::STRIP; }
  index_t rows() const { return index_t(end) * block_columns::STRIP; }
  index_t ld() const { return rows() + block_columns::margin; }
  index_t words() const { return ld() * columns(); }
};

/// A chunk: columns [begin, end) of a panel, which are sent or fetched at once.
struct Chunk {
  int panel;
  index_t begin, end;
  index_t offset, words;  ///< place of the chunk's first word in the panel; number of words
  bool last;              ///< True for the last chunk of its panel
};

/// Describes the panels, slots and chunks in which a factor of order n passes through the device.
///
///     0      panels        n      A panel needs its own columns and the messages of the panels before it, nothing
///     +---+----+---+--+--+-+      else of R. So `slots` panels are on the device at a time: one is sent, one is
///       \ |    |   |  |  | |      modified, one is fetched. All panels have about the same number of bytes. Beside
///         \    |   |  |  | |      the slots, the device holds the messages and V of all passes: O(nk).
///           \ _|___|__|__|_|
class Plan {
 public:
  /// Divides the factor into panels and chunks. `removed`: columns of V, the last ones, that are taken away. `word`:
  /// bytes of a scalar on the device. Takes at most `budget` bytes of device memory, and a single panel if `whole`.
  /// Throws out_of_memory with the least budget that works.
  Plan(index_t n, index_t k, index_t removed, int word, double budget, bool whole)
      : n_(n), k_(k), word_(word), passes_(block_columns::passes_of(k, removed, block_columns::most_columns)) {
    strips_ = block_columns::strips_of(n);
    double panel_bytes = whole ? bytes_of({0, strips_}) : double(tuning::stream_panel);
    int most_slots = whole ? 1 : tuning::stream_slots;
    for (;;) {
      divide(panel_bytes);
      even_out();
      slots_ = std::min(most_slots, int(panels_.size()));
      if (device_bytes() <= budget) break;
      if (slots_ > 1 && slot_words_ == narrowest()) most_slots = slots_ - 1;
      else if (slot_words_ > narrowest() && !whole)
        panel_bytes = std::min(panel_bytes, double(word_) * slot_words_) * 0.75;
      else
        throw out_of_memory("'device_memory' allows less device memory than this takes at least", device_bytes(),
                            budget);
    }
    const double chunk = std::min(double(tuning::stream_chunk), std::max(total_words() * word_ / 32, 65536.0));
    for (int p = 0; p < int(panels_.size()); ++p) {
      const Panel& panel = panels_[p];
      const index_t most = std::max<index_t>(1, index_t(chunk / word_) / panel.ld());
      for (index_t j = 0; j < panel.columns(); j += most) {
        const index_t end = std::min(j + most, panel.columns());
        chunks_.push_back({p, panel.column() + j, panel.column() + end, j * panel.ld(), (end - j) * panel.ld(),
                           end == panel.columns()});
        chunk_words_ = std::max(chunk_words_, chunks_.back().words);
      }
    }
  }

  index_t n() const { return n_; }
  index_t k() const { return k_; }
  int slots() const { return slots_; }
  int slot(int panel) const { return panel % slots_; }
  index_t slot_words() const { return slot_words_; }    ///< scalars of the largest panel
  int slot_strips() const { return slot_strips_; }      ///< strips of the widest panel
  index_t chunk_words() const { return chunk_words_; }  ///< scalars of the largest chunk
  const std::vector<Panel>& panels() const { return panels_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }
  /// Returns the number of staging buffers in each direction.
  int buffers() const { return int(std::min<std::size_t>(tuning::stream_buffers, chunks_.size())); }

  int passes() const { return int(passes_.size()); }
  const block_columns::PassColumns& columns_of(int pass) const { return passes_[pass]; }
  block_columns::SegmentSize pass(int pass) const {
    return {passes_[pass].width(), strips_, slot_strips_};
  }

  double device_bytes() const {
    double bytes = double(slots_) * word_ * slot_words_;
    for (int i = 0; i < passes(); ++i) bytes += pass(i).bytes();
    return bytes;
  }
  double total_words() const {
    double words = 0;
    for (const Panel& panel : panels_) words += double(panel.words());
    return words;
  }

 private:
  double bytes_of(const Panel& panel) const { return double(word_) * panel.words(); }
  index_t narrowest() const { return Panel{strips_ - 1, strips_}.words(); }

  /// Divides the factor into panels of as many strips as fit into `bytes`, but at least one strip.
  void divide(double bytes) {
    panels_.clear();
    slot_words_ = 0;
    slot_strips_ = 0;
    for (int first = 0, end; first < strips_; first = end) {
      end = first + 1;
      while (end < strips_ && bytes_of({first, end + 1}) <= bytes) ++end;
      panels_.push_back({first, end});
      slot_words_ = std::max(slot_words_, panels_.back().words());
      slot_strips_ = std::max(slot_strips_, end - first);
    }
  }

  /// Makes the largest panel smaller without changing the number of panels.
  void even_out() {
    const std::size_t count = panels_.size();
    double bytes = double(word_) * slot_words_;
    while (count > 1 && slot_words_ > narrowest() && panels_.size() == count) divide(bytes *= 0.95);
    while (panels_.size() > count) divide(bytes /= 0.95);
  }

  index_t n_, k_;
  int word_, strips_ = 0, slots_ = 1, slot_strips_ = 0;
  index_t slot_words_ = 0, chunk_words_ = 0;
  std::vector<block_columns::PassColumns> passes_;
  std::vector<Panel> panels_;
  std::vector<Chunk> chunks_;
};

}  // namespace gpucholmod::stream
