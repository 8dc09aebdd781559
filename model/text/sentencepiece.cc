// SPDX-License-Identifier: MIT
//
// SentencePiece for C. No exception of the C++ library passes this file.
#include "sentencepiece.h"

#include <sentencepiece_processor.h>

#include <cstdio>
#include <new>
#include <string>
#include <vector>

struct text_spm {
    sentencepiece::SentencePieceProcessor processor;
};

namespace {

// What `work` returns; the status that stands for an exception otherwise.
template <typename Work> iso_status guarded(Work work) {
    try {
        return work();
    } catch (const std::bad_alloc &) {
        return ISOBIT_E_NOMEM;
    } catch (...) {
        return ISOBIT_E_INTERNAL;
    }
}

} // namespace

iso_status text_spm_load(text_spm **spm, const char *proto, size_t bytes, char *why,
                         size_t bytes_of_why) {
    text_spm *made = nullptr;
    const iso_status status = guarded([&] {
        made = new text_spm;
        const auto loaded =
            made->processor.LoadFromSerializedProto(absl::string_view(proto, bytes));
        if (loaded.ok())
            return ISOBIT_OK;
        (void)std::snprintf(why, bytes_of_why, "SentencePiece refuses it: %s",
                            loaded.ToString().c_str());
        return ISOBIT_E_CONFIG;
    });
    if (status == ISOBIT_OK)
        *spm = made;
    else
        delete made;
    if (status == ISOBIT_E_NOMEM || status == ISOBIT_E_INTERNAL)
        (void)std::snprintf(why, bytes_of_why, "%s", iso_strerror(status));
    return status;
}

iso_status text_spm_encode(const text_spm *spm, const char *text, size_t bytes, text_spm_put *put,
                           void *to) {
    return guarded([&] {
        std::vector<std::string> pieces;
        if (!spm->processor.Encode(absl::string_view(text, bytes), &pieces).ok())
            return ISOBIT_E_CONFIG;
        for (const std::string &piece : pieces)
            put(to, piece.data(), piece.size());
        return ISOBIT_OK;
    });
}

iso_status text_spm_decode(const text_spm *spm, const char *const *pieces, size_t count,
                           text_spm_put *put, void *to) {
    return guarded([&] {
        std::string text;
        const std::vector<absl::string_view> views(pieces, pieces + count);
        if (!spm->processor.Decode(views, &text).ok())
            return ISOBIT_E_CONFIG;
        put(to, text.data(), text.size());
        return ISOBIT_OK;
    });
}

void text_spm_free(text_spm *spm) { delete spm; }
