/* SPDX-License-Identifier: MIT
 *
 * See roofline.h. Plain SVG without scripts, fonts or links. Points are numbered, since names would
 * cover each other; the list below a panel tells them, and so does pointing at one.
 */
#include "roofline.h"

#include <math.h>
#include <string.h>

static const double page = 1180, left = 70, right = 30, plot_height = 560, row = 17, margin = 24;
enum { LIST_COLUMNS = 3, MAX_LABELS = 512 };

static const char style[] =
    "text{font:12px sans-serif;fill:#222}.h{font-size:17px;font-weight:600}.t{font-size:14px;"
    "font-weight:600}.s{fill:#666}.n{font-size:10px}.grid{stroke:#e4e7eb}.roof{stroke:#33415c;"
    "fill:none;stroke-width:1.6}.level{stroke:#8d99ae;fill:none;stroke-width:1.2}.lead{stroke:"
    "#aaa;stroke-width:.7}";

/* One for each operation, in the order of their first points. */
static const char *const colours[] = {"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd",
                                      "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#7f7f7f",
                                      "#003f5c", "#a05195", "#f95d6a", "#665191", "#2f4b7c",
                                      "#6a994e", "#bc4749", "#386641", "#b5838d", "#457b9d"};
enum { COLOURS = sizeof colours / sizeof *colours };

struct box {
    double x, y, w, h;
};

/* Logarithmic axes of a panel whose upper edge is at `top`. */
struct axes {
    double x0, x1, y0, y1; /* decimal logarithms of the ends */
    double top;
};

static double at_x(const struct axes *a, double intensity) {
    return left + (log10(intensity) - a->x0) / (a->x1 - a->x0) * (page - left - right);
}
static double at_y(const struct axes *a, double speed) {
    return a->top + plot_height - (log10(speed * 1e-9) - a->y0) / (a->y1 - a->y0) * plot_height;
}

static struct axes axes_of(const struct roofline_panel *p, double top) {
    double low_x = 0.1, high_x = 100, low_y = p->fma, high_y = p->fma;
    for (size_t i = 0; i < p->count; i++) {
        low_x = fmin(low_x, p->points[i].intensity);
        high_x = fmax(high_x, p->points[i].intensity);
        low_y = fmin(low_y, p->points[i].speed);
        high_y = fmax(high_y, p->points[i].speed);
    }
    return (struct axes){.x0 = log10(low_x) - 0.1,
                         .x1 = log10(high_x) + 0.15,
                         .y0 = fmin(log10(low_y * 1e-9) - 0.15, log10(p->fma * 1e-9) - 1),
                         .y1 = log10(high_y * 1e-9) + 0.2,
                         .top = top};
}

static void put_grid(FILE *f, const struct axes *a) {
    const double bottom = a->top + plot_height;
    static const double steps[] = {1, 2, 5};
    for (int e = (int)floor(a->x0); e <= (int)ceil(a->x1); e++)
        for (size_t i = 0; i < 3; i++) {
            const double v = steps[i] * pow(10, e), x = at_x(a, v);
            if (log10(v) < a->x0 || log10(v) > a->x1)
                continue;
            fprintf(f, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, a->top, bottom);
            fprintf(f, "<text class=\"s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n",
                    x, bottom + 15, v);
        }
    for (int e = (int)floor(a->y0); e <= (int)ceil(a->y1); e++)
        for (size_t i = 0; i < 3; i++) {
            const double v = steps[i] * pow(10, e), y = at_y(a, v * 1e9);
            if (log10(v) < a->y0 || log10(v) > a->y1)
                continue;
            fprintf(f, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", left, y, page - right);
            fprintf(f, "<text class=\"s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                    left - 6, y + 4, v);
        }
    fprintf(f,
            "<text class=\"s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">operations per byte "
            "(each operand counted once)</text>\n"
            "<text class=\"s\" transform=\"translate(18 %.1f) rotate(-90)\" "
            "text-anchor=\"middle\">GFLOP/s</text>\n",
            (left + page - right) / 2, bottom + 33, a->top + plot_height / 2);
}

/* A bandwidth rises by one decade of speed for each decade of intensity, up to the FMA peak. */
static void put_roofs(FILE *f, const struct roofline_panel *p, const struct axes *a) {
    const double end = pow(10, a->x1);
    double first = end; /* where the fastest level meets the FMA peak */
    for (size_t i = 0; i < ROOFLINE_LEVELS && p->level_names[i]; i++) {
        const double bandwidth = p->bandwidths[i], ridge = p->fma / bandwidth;
        double x = fmax(pow(10, a->x0), pow(10, a->y0) * 1e9 / bandwidth);
        first = fmin(first, ridge);
        if (ridge <= x)
            continue;
        fprintf(f, "<path class=\"level\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", at_x(a, x),
                at_y(a, x * bandwidth), at_x(a, ridge), at_y(a, p->fma));
        /* Names along the lines, apart from each other. */
        x = fmax(x, fmin(ridge, 1) * 0.16) * 1.05;
        const double slope =
            (plot_height / (a->y1 - a->y0)) / ((page - left - right) / (a->x1 - a->x0));
        fprintf(f,
                "<text class=\"s\" transform=\"translate(%.1f %.1f) rotate(%.1f)\">%s %.0f GB/s"
                "</text>\n",
                at_x(a, x), at_y(a, x * bandwidth) - 4, -atan(slope) * 180 / 3.14159265,
                p->level_names[i], bandwidth * 1e-9);
    }
    fprintf(f, "<path class=\"roof\" d=\"M%.1f %.1fH%.1f\"/>", at_x(a, first), at_y(a, p->fma),
            page - right);
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">FMA %.1f GFLOP/s</text>\n",
            page - right, at_y(a, p->fma) - 6, p->fma * 1e-9);
}

static int overlap(const struct box *a, const struct box *b) {
    return a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h && b->y < a->y + a->h;
}

/* The nearest free place round the point, on growing circles. */
static struct box place_label(double x, double y, double width, const struct box *taken, size_t n) {
    struct box b = {0, 0, width, 10};
    for (int radius = 9; radius < 140; radius += 7)
        for (int i = 0; i < 16; i++) {
            const double angle = 3.14159265 / 8 * (i % 2 ? -(i + 1) / 2 : i / 2) - 0.6;
            int good = 1;
            b.x = x + radius * cos(angle) - width / 2, b.y = y + radius * sin(angle) - 5;
            for (size_t j = 0; j < n && good; j++)
                good = !overlap(&b, &taken[j]);
            if (good)
                return b;
        }
    return b;
}

/* The number of the operation among those of the points before. */
static size_t colour_of(const struct roofline_panel *p, size_t point) {
    size_t n = 0;
    for (size_t i = 0; i <= point; i++) {
        size_t j = 0;
        while (strcmp(p->points[j].operation, p->points[i].operation) != 0)
            j++;
        if (strcmp(p->points[i].operation, p->points[point].operation) == 0)
            return n;
        n += j == i;
    }
    return n;
}

static double share_of_roof(const struct roofline_panel *p, const struct roofline_point *q) {
    return 100 * q->speed / fmin(p->fma, p->bandwidths[q->level] * q->intensity);
}

static void put_points(FILE *f, const struct roofline_panel *p, const struct axes *a) {
    static struct box taken[2 * MAX_LABELS];
    const size_t count = p->count < MAX_LABELS ? p->count : MAX_LABELS;
    for (size_t i = 0; i < count; i++)
        taken[i] = (struct box){at_x(a, p->points[i].intensity) - 4,
                                at_y(a, p->points[i].speed) - 4, 8, 8};
    for (size_t i = 0; i < count; i++) {
        const struct roofline_point *q = &p->points[i];
        const double x = at_x(a, q->intensity), y = at_y(a, q->speed);
        const char *colour = colours[colour_of(p, i) % COLOURS];
        const struct box b = place_label(x, y, i < 9 ? 7 : i < 99 ? 13 : 19, taken, count + i);
        taken[count + i] = b;
        fprintf(f, "<path class=\"lead\" d=\"M%.1f %.1fL%.1f %.1f\"/>", x, y, b.x + b.w / 2,
                b.y + 5);
        fprintf(f,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\" fill=\"%s\"><title>%s %s: %.2f GFLOP/s, "
                "%.2f operations per byte</title></circle>",
                x, y, colour, q->operation, q->shape, q->speed * 1e-9, q->intensity);
        fprintf(f, "<text class=\"n\" x=\"%.1f\" y=\"%.1f\" style=\"fill:%s\">%zu</text>\n", b.x,
                b.y + 9, colour, i + 1);
    }
}

static size_t list_rows(const struct roofline_panel *p) {
    return (p->count + LIST_COLUMNS - 1) / LIST_COLUMNS;
}

static void put_list(FILE *f, const struct roofline_panel *p, double top) {
    const size_t rows = list_rows(p);
    const double width = (page - 2 * margin) / LIST_COLUMNS;
    for (size_t i = 0; i < p->count; i++) {
        const struct roofline_point *q = &p->points[i];
        const double x = margin + width * (double)(i / rows), y = top + row * (double)(i % rows);
        fprintf(f,
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" style=\"fill:%s\">%zu</text>"
                "<text x=\"%.1f\" y=\"%.1f\">%s %s</text>"
                "<text class=\"s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.1f GFLOP/s, %.0f "
                "%%</text>\n",
                x + 20, y, colours[colour_of(p, i) % COLOURS], i + 1, x + 28, y, q->operation,
                q->shape, x + width - 14, y, q->speed * 1e-9, share_of_roof(p, q));
    }
}

static double panel_height(const struct roofline_panel *p) {
    return 34 + plot_height + 62 + row * (double)list_rows(p) + 26;
}

int roofline_write(FILE *f, const char *title, const struct roofline_panel *panels, size_t count) {
    double height = 62;
    for (size_t i = 0; i < count; i++)
        height += panel_height(&panels[i]);
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\">\n<style>%s</style>\n<rect width=\"100%%\" "
            "height=\"100%%\" fill=\"#fff\"/>\n",
            page, height, page, height, style);
    fprintf(f, "<text class=\"h\" x=\"%.0f\" y=\"32\">%s</text>\n", margin, title);
    fprintf(f,
            "<text class=\"s\" x=\"%.0f\" y=\"51\">Lines: measured peaks on one thread. Percent: "
            "of the roof of the memory that holds the operands (nominal operations where it is no "
            "product).</text>\n",
            margin);
    double top = 62;
    for (size_t i = 0; i < count; i++) {
        const struct axes axes = axes_of(&panels[i], top + 34);
        fprintf(f, "<text class=\"t\" x=\"%.0f\" y=\"%.1f\">%s</text>\n", margin, top + 22,
                panels[i].title);
        put_grid(f, &axes);
        put_roofs(f, &panels[i], &axes);
        put_points(f, &panels[i], &axes);
        put_list(f, &panels[i], axes.top + plot_height + 62);
        top += panel_height(&panels[i]);
    }
    fputs("</svg>\n", f);
    return !ferror(f);
}
