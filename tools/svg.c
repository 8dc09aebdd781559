/* SPDX-License-Identifier: MIT
 *
 * Attention as a picture: for each word a row of small heat maps, first the mean of the heads,
 * then every head; across the source tokens, down the output tokens. Plain SVG without scripts,
 * fonts or links, so that it can be mailed, committed and opened anywhere.
 */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double page_width = 1120, margin = 36, gap = 26, caption_room = 22, label_room = 34;

/* ----------------------------------------------------------------------------------- helpers */

/* Text as XML: markup escaped, characters that XML forbids replaced. */
static void put_escaped(FILE *file, const char *text) {
    const char *next = text;
    for (uint32_t c; (c = next_code_point(&next)) != 0; text = next) {
        if (c == '&')
            fputs("&amp;", file);
        else if (c == '<')
            fputs("&lt;", file);
        else if (c == '>')
            fputs("&gt;", file);
        else if (c == '"')
            fputs("&quot;", file);
        else if (c < 0x20 || c == 0xfffe || c == 0xffff)
            fputs("\xef\xbf\xbd", file);
        else
            fwrite(text, 1, (size_t)(next - text), file);
    }
}

static void put_label(FILE *file, double x, double y, const char *class, const char *text) {
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
    put_escaped(file, text);
    fputs("</text>\n", file);
}

/* White to dark blue, darker with every step, so that it survives grey printing. */
static const int ramp[][3] = {{248, 250, 252}, {196, 222, 238}, {122, 181, 217},
                              {50, 128, 184},  {17, 77, 134},   {8, 32, 72}};
enum { RAMP_STEPS = sizeof ramp / sizeof ramp[0] - 1 };

static void put_colour(FILE *file, double weight) {
    double position = (weight > 0 ? (weight < 1 ? weight : 1) : 0) * RAMP_STEPS;
    int step = position >= RAMP_STEPS ? RAMP_STEPS - 1 : (int)position;
    double share = position - step;
    int rgb[3];
    for (int i = 0; i < 3; i++)
        rgb[i] = (int)lround(ramp[step][i] + share * (ramp[step + 1][i] - ramp[step][i]));
    fprintf(file, "#%02x%02x%02x", (unsigned)rgb[0], (unsigned)rgb[1], (unsigned)rgb[2]);
}

/* ------------------------------------------------------------------------------------ layout */

/* Sizes that follow from the labels of one map. */
struct layout {
    double cell, font, left, top; /* left, top: room for labels */
    double width, height;         /* of one panel with its labels */
    size_t across, rows;          /* panels in a row; rows of panels */
    bool turned;                  /* long source labels are written upwards */
};

static size_t widest(const char *const *labels, size_t count) {
    size_t most = 1;
    for (size_t i = 0; i < count; i++) {
        size_t width = display_width(labels[i]);
        most = width > most ? width : most;
    }
    return most;
}

static struct layout lay_out(const struct heat_map *map) {
    struct layout l = {0};
    /* As few rows of panels as leave cells that can be read: side by side they compare best. */
    for (size_t rows = 1; rows <= map->heads + 1; rows++) {
        size_t beside = (map->heads + rows) / rows;
        double room = (page_width - 2 * margin + gap) / (double)beside - gap - label_room;
        l.cell = fmin(22, fmax(9, room / (double)map->sources));
        if (l.cell >= 13)
            break;
    }
    l.font = fmin(13, 0.78 * l.cell);
    double letter = 0.66 * l.font;
    size_t wide = widest(map->source_labels, map->sources);
    l.turned = (double)wide * letter > 1.3 * l.cell;
    l.left = fmax(16, (double)widest(map->target_labels, map->targets) * letter + 10);
    l.top = l.turned ? (double)wide * letter + 8 : l.font + 8;
    l.width = l.left + (double)map->sources * l.cell;
    l.height = caption_room + l.top + (double)map->targets * l.cell;
    const double fits = floor((page_width - 2 * margin + gap) / (l.width + gap));
    const size_t most = fits > 1 ? (size_t)fits : 1;
    l.rows = map->heads / most + 1;
    /* Rows of about the same length look better than one short last row. */
    for (l.across = most; l.across > 1 && map->heads / (l.across - 1) + 1 == l.rows;)
        l.across--;
    return l;
}

static double map_height(const struct heat_map *map) {
    struct layout l = lay_out(map);
    return 34 + (double)l.rows * (l.height + gap);
}

/* -------------------------------------------------------------------------------------- parts */

static double weight_at(const struct heat_map *map, size_t panel, size_t target, size_t source) {
    size_t plane = map->targets * map->sources, element = target * map->sources + source;
    if (panel > 0)
        return (double)map->weights[(panel - 1) * plane + element];
    double sum = 0;
    for (size_t head = 0; head < map->heads; head++)
        sum += (double)map->weights[head * plane + element];
    return sum / (double)map->heads;
}

static void put_cells(FILE *file, const struct heat_map *map, const struct layout *l, size_t panel,
                      double x, double y) {
    bool hints = map->sources * map->targets <= 2500; /* beyond, they weigh more than they help */
    for (size_t t = 0; t < map->targets; t++) {
        for (size_t s = 0; s < map->sources; s++) {
            double weight = weight_at(map, panel, t, s);
            if (!(weight >= 0.002))
                continue; /* the colour of the ground */
            fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"",
                    x + (double)s * l->cell, y + (double)t * l->cell, l->cell, l->cell);
            put_colour(file, weight);
            if (hints) {
                fputs("\"><title>", file);
                put_escaped(file, map->target_labels[t]);
                fputs(" from ", file);
                put_escaped(file, map->source_labels[s]);
                fprintf(file, ": %.3f</title></rect>\n", weight);
            } else {
                fputs("\"/>\n", file);
            }
        }
    }
}

/* Faint lines below the cells, to follow a row or a column through empty ground. */
static void put_grid(FILE *file, const struct heat_map *map, const struct layout *l, double x,
                     double y) {
    fputs("<path class=\"grid\" d=\"", file);
    for (size_t s = 1; s < map->sources; s++)
        fprintf(file, "M%.1f %.1fv%.1f", x + (double)s * l->cell, y,
                (double)map->targets * l->cell);
    for (size_t t = 1; t < map->targets; t++)
        fprintf(file, "M%.1f %.1fh%.1f", x, y + (double)t * l->cell,
                (double)map->sources * l->cell);
    fputs("\"/>\n", file);
}

static void put_panel(FILE *file, const struct heat_map *map, const struct layout *l, size_t panel,
                      double x, double y) {
    char name[40] = "mean";
    if (panel > 0)
        snprintf(name, sizeof name, "head %zu", panel);
    double width = (double)map->sources * l->cell, height = (double)map->targets * l->cell;
    double left = x + l->left, top = y + caption_room + l->top;
    put_label(file, left, y + caption_room - 8, panel == 0 ? "panel mean" : "panel", name);
    if (panel % l->across == 0) { /* the axes, once in each row of panels */
        put_label(file, left + width, y + caption_room - 8, "axis", "read \xe2\x86\x92");
        fprintf(file, "<text transform=\"translate(%.1f %.1f) rotate(-90)\" class=\"axis\">", x - 6,
                top);
        put_escaped(file, "\xe2\x86\x90 written");
        fputs("</text>\n", file);
    }
    fprintf(file, "<g font-size=\"%.1f\">\n", l->font);
    for (size_t s = 0; s < map->sources; s++) {
        double centre = left + ((double)s + 0.5) * l->cell;
        if (l->turned) {
            fprintf(file, "<text transform=\"translate(%.1f %.1f) rotate(-90)\" class=\"up\">",
                    centre + 0.35 * l->font, top - 5);
            put_escaped(file, map->source_labels[s]);
            fputs("</text>\n", file);
        } else {
            put_label(file, centre, top - 6, "across", map->source_labels[s]);
        }
    }
    for (size_t t = 0; t < map->targets; t++)
        put_label(file, left - 6, top + ((double)t + 0.5) * l->cell + 0.35 * l->font, "down",
                  map->target_labels[t]);
    fputs("</g>\n", file);
    fprintf(file,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"ground\"/>\n"
            "<g shape-rendering=\"crispEdges\">\n",
            left, top, width, height);
    put_grid(file, map, l, left, top);
    put_cells(file, map, l, panel, left, top);
    fprintf(file,
            "</g>\n<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"frame\"/>\n",
            left, top, width, height);
}

static void put_legend(FILE *file, double x, double y) {
    const double width = 180, height = 10;
    fputs("<defs><linearGradient id=\"ramp\">", file);
    for (int i = 0; i <= RAMP_STEPS; i++) {
        fprintf(file, "<stop offset=\"%.2f\" stop-color=\"", (double)i / RAMP_STEPS);
        put_colour(file, (double)i / RAMP_STEPS);
        fputs("\"/>", file);
    }
    fputs("</linearGradient></defs>\n", file);
    put_label(file, x, y - 7, "small", "attention weight");
    fprintf(file,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"url(#ramp)\" "
            "stroke=\"#8a97a6\" stroke-width=\"0.6\"/>\n",
            x, y, width, height);
    for (int i = 0; i <= 4; i++) {
        char tick[16];
        snprintf(tick, sizeof tick, "%g", 0.25 * i);
        double at = x + width * 0.25 * i;
        fprintf(file, "<path d=\"M%.1f %.1fv4\" stroke=\"#8a97a6\" stroke-width=\"0.6\"/>\n", at,
                y + height);
        put_label(file, at, y + height + 15, "tick", tick);
    }
}

static void put_map(FILE *file, const struct heat_map *map, double y) {
    struct layout l = lay_out(map);
    put_label(file, margin, y + 16, "word", map->title);
    for (size_t panel = 0; panel <= map->heads; panel++) {
        size_t row = panel / l.across, column = panel % l.across;
        put_panel(file, map, &l, panel, margin + (double)column * (l.width + gap),
                  y + 30 + (double)row * (l.height + gap));
    }
}

static const char style[] =
    "<style>text{font-family:'DejaVu Sans','Noto Sans','Segoe UI',Helvetica,Arial,sans-serif;"
    "fill:#1c2733}.heading{font-size:20px;font-weight:bold}.small{font-size:12px;fill:#51606f}"
    ".word{font-size:16px;font-weight:bold}.panel{font-size:12px;fill:#51606f}"
    ".mean{font-weight:bold;fill:#1c2733}.axis{font-size:11px;fill:#51606f;text-anchor:end}.across,"
    ".tick{text-anchor:middle}"
    ".tick{font-size:11px;fill:#51606f}.down{text-anchor:end}.up{text-anchor:start}"
    ".grid{fill:none;stroke:#e6ecf1;stroke-width:1}.ground{fill:#f8fafc}.frame{fill:none;stroke:#"
    "8a97a6;stroke-width:0.8}</style>\n";

int svg_write(const char *path, const struct heat_map *maps, size_t count,
              const struct caption *caption) {
    struct target target;
    if (!target_open(&target, path))
        return fail("cannot write %s: %s", path, strerror(errno));
    FILE *file = target.file;
    const double head = 92;
    double height = head + 8, width = 640;
    for (size_t i = 0; i < count; i++) {
        struct layout l = lay_out(&maps[i]);
        height += map_height(&maps[i]);
        width = fmax(width, 2 * margin - gap + (double)l.across * (l.width + gap));
    }
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n<title>",
            width, height, width, height);
    put_escaped(file, caption->heading);
    fputs("</title>\n", file);
    fputs(style, file);
    fprintf(file, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", width, height);
    put_label(file, margin, 40, "heading", caption->heading);
    put_label(file, margin, 62, "small", caption->subtitle);
    put_label(file, margin, 79, "small", caption->axes);
    put_legend(file, width - margin - 186, 40);
    double y = head + 8;
    for (size_t i = 0; i < count; i++) {
        put_map(file, &maps[i], y);
        y += map_height(&maps[i]);
    }
    fputs("</svg>\n", file);
    int code = target_close(&target) ? 0
                                     : fail("cannot write %s: %s", path,
                                            errno != 0 ? strerror(errno) : "output error");
    return code;
}

/* ------------------------------------------------------------------------ from model to picture */

enum { LABEL_BYTES = 24 };

static bool is_end(const struct session *session, uint32_t id) {
    for (size_t i = 0; i < session->info->eos_count; i++)
        if (session->info->eos_ids[i] == id)
            return true;
    return false;
}

typedef const char *token_text(const iso_tokenizer *tokenizer, uint32_t id);

static void make_label(char *label, const struct session *session, token_text *text, uint32_t id) {
    const char *token = session->tokenizer != NULL ? text(session->tokenizer, id) : NULL;
    if (is_end(session, id)) {
        snprintf(label, LABEL_BYTES, "\xe2\x96\xa0"); /* a black square */
    } else if (token == NULL) {
        snprintf(label, LABEL_BYTES, "%u", (unsigned)id);
    } else if (strlen(token) >= LABEL_BYTES - 4) {
        snprintf(label, LABEL_BYTES, "#%u", (unsigned)id); /* never cut within a character */
    } else if (strcmp(token, " ") == 0) {
        snprintf(label, LABEL_BYTES, "\xe2\x90\xa3"); /* an open box */
    } else {
        const char *next = token;
        bool bare = is_combining(next_code_point(&next)); /* such a mark needs something below it */
        snprintf(label, LABEL_BYTES, "%s%s", bare ? "\xe2\x97\x8c" : "", token);
    }
}

/* Labels live in one allocation: pointers first, then their text. */
static const char **make_labels(const struct session *session, token_text *text_of,
                                const uint32_t *ids, size_t count) {
    const char **labels = malloc(count * (sizeof *labels + LABEL_BYTES) + 1);
    if (labels == NULL)
        return NULL;
    char *text = (char *)(labels + count);
    for (size_t i = 0; i < count; i++, text += LABEL_BYTES) {
        make_label(text, session, text_of, ids[i]);
        labels[i] = text;
    }
    return labels;
}

static char *make_title(const struct session *session, const uint32_t *source, size_t length,
                        const iso_hypothesis *best) {
    if (session->tokenizer == NULL)
        return strdup("token ids");
    char *from = decode_source(session, source, length);
    if (best == NULL)
        return from;
    char *to = decode_text(session, best->ids, best->length);
    char *title = NULL;
    if (from != NULL && to != NULL && asprintf(&title, "%s \xe2\x86\x92 %s", from, to) < 0)
        title = NULL;
    free(from);
    free(to);
    return title;
}

/* A map and the memory that it points to. */
struct drawing {
    struct heat_map map;
    float *weights; /* of the map, unless a result owns them */
};

static void drawing_free(struct drawing *d) {
    free((char *)d->map.title);
    free((void *)d->map.source_labels);
    free((void *)d->map.target_labels);
    free(d->weights);
}

/* Cross-attention, which generation has kept. */
static int draw_cross(struct drawing *d, const struct session *session, const uint32_t *source,
                      size_t length, const iso_hypothesis *best, size_t layer) {
    const size_t heads = session->info->decoder_heads;
    d->map = (struct heat_map){
        .title = make_title(session, source, length, best),
        .weights = best->attention + layer * heads * best->length * length,
        .heads = heads,
        .sources = length,
        .targets = best->length,
        .source_labels = make_labels(session, iso_tokenizer_source_token, source, length),
        .target_labels = make_labels(session, iso_tokenizer_token, best->ids, best->length)};
    return d->map.title != NULL && d->map.source_labels != NULL && d->map.target_labels != NULL
               ? 0
               : fail("out of memory for the picture");
}

/* What the decoder has read when it wrote its last token: the start token, or the prompt, first. */
static bool read_by_decoder(struct ids *read, const struct session *session, const uint32_t *source,
                            size_t length, const iso_hypothesis *best) {
    const bool alone = session->info->encoder_layers == 0;
    if (!ids_grow(read, (alone ? length : 1) + best->length))
        return false;
    if (alone)
        memcpy(read->data, source, length * sizeof *source);
    else
        read->data[0] = session->info->decoder_start_id;
    read->count = alone ? length : 1;
    memcpy(read->data + read->count, best->ids, (best->length - 1) * sizeof *best->ids);
    read->count += best->length - 1;
    return true;
}

/* Self-attention: of the encoder over a source, or, where there is a target, of the decoder. */
static int draw_self(struct drawing *d, const struct session *session, const uint32_t *source,
                     size_t length, const iso_hypothesis *best, size_t layer) {
    const iso_model_info *info = session->info;
    const size_t heads = best != NULL ? info->decoder_heads : info->encoder_heads;
    const bool alone = info->encoder_layers == 0;
    struct ids read = {0};
    if (best != NULL && !read_by_decoder(&read, session, source, length, best))
        return fail("out of memory for the picture");
    const uint32_t *ids = best != NULL ? read.data : source;
    const size_t n = best != NULL ? read.count : length;
    token_text *text = best != NULL ? iso_tokenizer_token : iso_tokenizer_source_token;
    d->map = (struct heat_map){.title = make_title(session, source, length, best),
                               .heads = heads,
                               .sources = n,
                               .targets = n,
                               .source_labels = make_labels(session, text, ids, n),
                               .target_labels = make_labels(session, text, ids, n)};
    d->weights =
        n <= SIZE_MAX / n / heads / sizeof(float) ? calloc(heads * n * n, sizeof(float)) : NULL;
    d->map.weights = d->weights;
    iso_error error = {0};
    int code = d->map.title == NULL || d->map.source_labels == NULL ||
                       d->map.target_labels == NULL || d->weights == NULL
                   ? fail("out of memory for the picture")
                   : 0;
    const iso_status status =
        code != 0 ? ISOBIT_OK
                  : iso_attention_weights_f32(d->weights, session->model,
                                              best != NULL ? ISOBIT_ATTENTION_DECODER
                                                           : ISOBIT_ATTENTION_ENCODER,
                                              layer, 1, alone ? NULL : source, alone ? 0 : length,
                                              read.data, read.count, &session->context, &error);
    free(read.data);
    return status != ISOBIT_OK ? fail_error(&error, status) : code;
}

int attention_kind(const iso_model_info *info, const struct options *options,
                   iso_attention_kind *kind, size_t *layers) {
    static const char *const names[] = {"encoder", "decoder", "cross"};
    const bool from = info->encoder_layers != 0, to = info->decoder_layers != 0;
    size_t found = 0;
    while (options->of != NULL && found < 3 && strcmp(options->of, names[found]) != 0)
        found++;
    if (found == 3)
        return usage("--of %s: give encoder, decoder or cross", options->of);
    if (options->of == NULL)
        found = from && to ? ISOBIT_ATTENTION_CROSS
                : to       ? ISOBIT_ATTENTION_DECODER
                           : ISOBIT_ATTENTION_ENCODER;
    if ((found != ISOBIT_ATTENTION_DECODER && !from) || (found != ISOBIT_ATTENTION_ENCODER && !to))
        return usage("--of %s: the model (%s) has no %s", names[found], info->family,
                     from ? "decoder" : "encoder");
    *kind = (iso_attention_kind)found;
    *layers = found == ISOBIT_ATTENTION_ENCODER ? info->encoder_layers : info->decoder_layers;
    if (options->layer > *layers)
        return usage("--layer %zu: the model has %zu %s layers", options->layer, *layers,
                     found == ISOBIT_ATTENTION_ENCODER ? "encoder" : "decoder");
    return 0;
}

static struct caption make_caption(const struct session *session, iso_attention_kind kind,
                                   size_t layer, size_t layers) {
    const bool encoder = kind == ISOBIT_ATTENTION_ENCODER;
    struct caption caption = {
        .heading = encoder ? "What the encoder looks at" : "What the decoder looks at",
        .axes = kind == ISOBIT_ATTENTION_CROSS
                    ? "Across: what is read. Down: what is written; each row adds up to 1. "
                      "\xe2\x96\xa0 is the end."
                    : "Down: who looks. Across: at what; each row adds up to 1. "
                      "\xe2\x96\xa0 is the end."};
    snprintf(caption.subtitle, sizeof caption.subtitle,
             "%s-attention, %s layer %zu of %zu: %zu heads and their mean",
             kind == ISOBIT_ATTENTION_CROSS ? "Cross" : "Self", encoder ? "encoder" : "decoder",
             layer + 1, layers,
             encoder ? session->info->encoder_heads : session->info->decoder_heads);
    return caption;
}

int attention_picture(const struct session *session, const struct options *options,
                      const iso_generate_options *how, const uint32_t *ids, const size_t *lengths,
                      size_t count) {
    iso_attention_kind kind;
    size_t layers, drawn = 0;
    int code = attention_kind(session->info, options, &kind, &layers);
    if (code != 0)
        return code;
    const size_t layer = options->layer != 0 ? options->layer - 1 : layers - 1;
    iso_generation *generation = NULL;
    if (kind != ISOBIT_ATTENTION_ENCODER) {
        iso_generate_options with = *how;
        with.attention = kind == ISOBIT_ATTENTION_CROSS;
        iso_error error = {0};
        iso_status status = iso_generate(&generation, session->model, ids, lengths, count, &with,
                                         &session->context, &error);
        if (status != ISOBIT_OK)
            return fail_error(&error, status);
    }
    struct drawing *drawings = calloc(count, sizeof *drawings);
    struct heat_map *maps = calloc(count, sizeof *maps);
    if (drawings == NULL || maps == NULL)
        code = fail("out of memory for the picture");
    for (size_t i = 0; i < count && code == 0; ids += lengths[i++]) {
        const iso_hypothesis *best = generation != NULL ? &generation->best[i] : NULL;
        if (best != NULL && best->length == 0)
            continue;
        struct drawing *d = &drawings[drawn++];
        code = kind == ISOBIT_ATTENTION_CROSS ? draw_cross(d, session, ids, lengths[i], best, layer)
                                              : draw_self(d, session, ids, lengths[i], best, layer);
        maps[drawn - 1] = d->map;
    }
    const struct caption caption = make_caption(session, kind, layer, layers);
    if (code == 0)
        code = drawn == 0 ? fail("there is nothing to draw: the output is empty")
                          : svg_write(options->attention, maps, drawn, &caption);
    for (size_t i = 0; i < drawn; i++)
        drawing_free(&drawings[i]);
    free(drawings);
    free(maps);
    iso_generation_free(generation);
    return code;
}

/* -------------------------------------------------------------------------- the first line */

enum { PICTURE_SEQUENCES = 6 };

int picture_keep(struct picture *picture, const struct options *options,
                 const struct batch *batch) {
    size_t line = 0;
    if (options->attention == NULL || picture->lengths.count > 0)
        return 0;
    while (line < batch->line_sequences.count && batch->line_sequences.data[line] == 0)
        line++;
    if (line == batch->line_sequences.count)
        return 0;
    size_t count = batch->line_sequences.data[line];
    if (count > PICTURE_SEQUENCES)
        count = PICTURE_SEQUENCES;
    size_t ids = 0; /* the lines before it have no sequence: it begins at 0 */
    for (size_t i = 0; i < count; i++)
        ids += batch->source_lengths.data[i];
    if (!ids_grow(&picture->ids, ids) || !sizes_grow(&picture->lengths, count))
        return fail("out of memory for the picture");
    memcpy(picture->ids.data, batch->sources.data, ids * sizeof(uint32_t));
    memcpy(picture->lengths.data, batch->source_lengths.data, count * sizeof(size_t));
    picture->ids.count = ids;
    picture->lengths.count = count;
    return 0;
}

int picture_draw(const struct picture *picture, const struct session *session,
                 const struct options *options, const iso_generate_options *how) {
    if (options->attention == NULL)
        return 0;
    if (picture->lengths.count == 0)
        return fail("--attention %s: the input has nothing to draw", options->attention);
    return attention_picture(session, options, how, picture->ids.data, picture->lengths.data,
                             picture->lengths.count);
}

void picture_free(struct picture *picture) {
    free(picture->ids.data);
    free(picture->lengths.data);
}
