/* A small writer of SVG 1.1: rectangles, lines, curves, texts, nothing that needs a script, a style
 * sheet or another file.
 *
 * Numbers are written with two places, which is a hundredth of a pixel; those that are no numbers
 * as 0, so that no file is one that a reader refuses. Texts may come from others (labels of jobs,
 * names of engines): nothing of them is markup.
 *
 * Called by chart.c and whoever draws.
 */
#include "client/picture/svg.h"
#include "proto/text.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define CHARACTER_WIDTH 0.56 /* of its height, on the average of a sans-serif face */

static double finite_of(double value)
{
    return isfinite(value) ? value : 0;
}

static void attribute(FILE *file, const char *name, double value)
{
    fprintf(file, " %s=\"%.2f\"", name, finite_of(value));
}

static const char *entity_of(char character)
{
    switch (character) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    default: return NULL;
    }
}

/* XML has no word for U+FFFE and U+FFFF. */
static bool is_in_xml(const char *text, size_t n)
{
    bool is_none = n == 3 && memcmp(text, "\xef\xbf", 2) == 0 && (unsigned char)text[2] >= 0xbe;
    return n > 0 && !is_none && text_is_printable(text, n);
}

void svg_write_escaped(FILE *file, const char *text)
{
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        const char *entity = entity_of(text[0]);
        n = text_character_bytes(text, left);
        bool is_good = is_in_xml(text, n);
        n = n > 0 ? n : 1;
        if (entity)
            fputs(entity, file);
        else if (is_good)
            fwrite(text, 1, n, file);
        else
            fputc('?', file);
    }
}

void svg_begin(FILE *file, double width, double height, const char *title)
{
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%.0f\" "
            "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\">\n<title>",
            finite_of(width), finite_of(height), finite_of(width), finite_of(height));
    svg_write_escaped(file, title);
    fputs("</title>\n", file);
    svg_rectangle(file, (struct svg_point){0, 0}, width, height, "#ffffff", 1);
}

void svg_end(FILE *file)
{
    fputs("</svg>\n", file);
}

void svg_rectangle(FILE *file, struct svg_point corner, double width, double height,
                   const char *fill, double opacity)
{
    fputs("<rect", file);
    attribute(file, "x", corner.x);
    attribute(file, "y", corner.y);
    attribute(file, "width", width);
    attribute(file, "height", height);
    fprintf(file, " fill=\"%s\" fill-opacity=\"%.2f\"/>\n", fill, finite_of(opacity));
}

void svg_line(FILE *file, struct svg_point from, struct svg_point to, const char *colour)
{
    fputs("<line", file);
    attribute(file, "x1", from.x);
    attribute(file, "y1", from.y);
    attribute(file, "x2", to.x);
    attribute(file, "y2", to.y);
    fprintf(file, " stroke=\"%s\"/>\n", colour);
}

static void write_points(FILE *file, const struct svg_point *points, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fprintf(file, "%s%.2f,%.2f", i > 0 ? " " : "", finite_of(points[i].x),
                finite_of(points[i].y));
}

void svg_curve(FILE *file, const struct svg_point *points, size_t n, const char *colour,
               const char *dashes)
{
    if (n == 0)
        return;
    if (n == 1) {
        fputs("<circle", file);
        attribute(file, "cx", points[0].x);
        attribute(file, "cy", points[0].y);
        fprintf(file, " r=\"2\" fill=\"%s\"/>\n", colour);
        return;
    }
    fputs("<polyline points=\"", file);
    write_points(file, points, n);
    fprintf(file, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" stroke-linejoin=\"round\"",
            colour);
    if (dashes[0])
        fprintf(file, " stroke-dasharray=\"%s\"", dashes);
    fputs("/>\n", file);
}

void svg_area(FILE *file, const struct svg_point *points, size_t n, double base, const char *colour,
              double opacity)
{
    if (n < 2)
        return;
    fprintf(file, "<polygon points=\"%.2f,%.2f ", finite_of(points[0].x), finite_of(base));
    write_points(file, points, n);
    fprintf(file, " %.2f,%.2f\" fill=\"%s\" fill-opacity=\"%.2f\"/>\n", finite_of(points[n - 1].x),
            finite_of(base), colour, finite_of(opacity));
}

static void write_base64(FILE *file, const uint8_t *data, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t bits = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                        (left > 2 ? data[i + 2] : 0);
        for (unsigned j = 0; j < 4; j++)
            fputc(j > left ? '=' : digits[bits >> (18 - 6 * j) & 63], file);
    }
}

void svg_image(FILE *file, struct svg_point corner, double width, double height, const void *png,
               size_t n)
{
    fputs("<image", file);
    attribute(file, "x", corner.x);
    attribute(file, "y", corner.y);
    attribute(file, "width", width);
    attribute(file, "height", height);
    fputs(" preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" "
          "xmlns:xlink=\"http://www.w3.org/1999/xlink\" xlink:href=\"data:image/png;base64,",
          file);
    write_base64(file, png, n);
    fputs("\"/>\n", file);
}

void svg_text(FILE *file, struct svg_point at, enum svg_anchor anchor, double size,
              const char *colour, const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    fputs("<text", file);
    attribute(file, "x", at.x);
    attribute(file, "y", at.y);
    fprintf(file, " text-anchor=\"%s\" font-size=\"%.0f\" fill=\"%s\">", anchors[anchor],
            finite_of(size), colour);
    svg_write_escaped(file, text);
    fputs("</text>\n", file);
}

double svg_text_width(const char *text, double size)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return (double)n * size * CHARACTER_WIDTH;
}
