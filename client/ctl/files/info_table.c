/* The table that `gpuarrayctl info FILE` prints.
 *
 * A line for each thing in the file, columns as wide as they need to be, and no column that is
 * empty in every line. Names are whole, since they are copied into other commands; other cells are
 * cut. Attributes are indented below the line of what has them.
 *
 * Called by info_file.c.
 */
#include "client/ctl/files/info_table.h"

#include "proto/text.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CELL 60 /* characters */

enum column { NAME, TYPE, SHAPE, MAX_SHAPE, DIMENSIONS, CHUNKS, FILTERS, UNITS, LONG_NAME };

static const char *const titles[INFO_COLUMNS] = {
    "name", "dtype", "shape", "maxshape", "dimensions", "chunks", "filters", "units", "long_name"};

struct info_row {
    bool is_array;             /* of others the type is a sentence, and the last cell */
    char *cells[INFO_COLUMNS]; /* NULL: empty */
    char *attributes;
};

/* ---- Cells ---- */

static size_t characters(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void cut(char *text)
{
    size_t n = 0, at = 0;
    if (characters(text) <= MAX_CELL)
        return;
    for (; text[at]; at++) {
        n += ((unsigned char)text[at] & 0xc0) != 0x80;
        if (n > MAX_CELL - 3)
            break;
    }
    strcpy(text + at, "...");
}

static char *copy(const char *text)
{
    char *made = text ? strdup(text) : NULL;
    if (made)
        text_make_printable(made);
    return made;
}

static char *text_of(const struct gad_listed *entry, const char *attribute)
{
    const struct gad_attribute *found = listed_attribute(entry, attribute);
    return found ? copy(found->text) : NULL;
}

static char *name_of(const struct gad_listed *entry)
{
    size_t n = strlen(entry->name);
    bool is_bare_group = entry->kind == GAD_LISTED_GROUP && n > 0 && entry->name[n - 1] != '/';
    char *name = malloc(n + 2);
    if (!name)
        return NULL;
    snprintf(name, n + 2, "%s%s", entry->name, is_bare_group ? "/" : "");
    text_make_printable(name);
    return name;
}

/* Where a dtype alone does not tell that no job can read it. */
static char *type_of(const struct gad_listed *entry)
{
    char text[200];
    bool is_dtype = entry->type && !strchr(entry->type, ' ');
    snprintf(text, sizeof(text), "%.150s%s", entry->type ? entry->type : "",
             is_dtype && !entry->is_served ? " (not served)" : "");
    return copy(text);
}

static void fill_array(struct info_row *row, const struct gad_listed *entry)
{
    row->cells[SHAPE] = entry->shape ? listed_sizes(entry->ndim, entry->shape) : NULL;
    row->cells[MAX_SHAPE] = entry->max_shape ? listed_sizes(entry->ndim, entry->max_shape) : NULL;
    row->cells[DIMENSIONS] = entry->dimensions ? listed_dimensions(entry) : NULL;
    row->cells[CHUNKS] = entry->chunk_shape ? listed_sizes(entry->ndim, entry->chunk_shape) : NULL;
    row->cells[FILTERS] = copy(entry->filters);
    row->cells[UNITS] = text_of(entry, "units");
    row->cells[LONG_NAME] = text_of(entry, "long_name");
}

static char *attributes_of(const struct gad_listed *entry)
{
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *file = open_memstream(&text, &n_bytes);
    if (!file)
        return NULL;
    listed_print_attributes(file, entry, 4);
    return fclose(file) == 0 ? text : NULL;
}

bool info_table_add(struct info_table *table, const struct gad_listed *entry)
{
    if (table->n_rows == table->n_room) {
        size_t room = table->n_room ? table->n_room * 2 : 64;
        struct info_row *rows = realloc(table->rows, room * sizeof(*rows));
        if (!rows)
            return false;
        table->rows = rows;
        table->n_room = room;
    }
    struct info_row row = {.is_array = entry->kind == GAD_LISTED_ARRAY};
    row.cells[NAME] = name_of(entry);
    row.cells[TYPE] = row.is_array ? type_of(entry) : copy(entry->type ? entry->type : "group");
    if (row.is_array)
        fill_array(&row, entry);
    if (table->has_attributes)
        row.attributes = attributes_of(entry);
    for (int i = TYPE; row.is_array && i < INFO_COLUMNS; i++)
        if (row.cells[i])
            cut(row.cells[i]);
    table->rows[table->n_rows++] = row;
    return row.cells[NAME] && row.cells[TYPE] && (row.attributes || !table->has_attributes);
}

/* ---- The table ---- */

/* Without blanks at its end. */
static void print_line(const size_t *widths, const char *const *cells)
{
    size_t blanks = 0;
    for (int i = 0; i < INFO_COLUMNS; i++) {
        const char *cell = cells[i] ? cells[i] : "";
        size_t n = characters(cell);
        if (n > 0)
            printf("%*s%s", (int)blanks, "", cell);
        if (widths[i] > 0)
            blanks = (n > 0 ? 0 : blanks) + (widths[i] > n ? widths[i] - n : 0) + 2;
    }
    putchar('\n');
}

void info_table_print(const struct info_table *table)
{
    size_t widths[INFO_COLUMNS] = {0};
    for (size_t r = 0; r < table->n_rows; r++)
        for (int i = 0; i < (table->rows[r].is_array ? INFO_COLUMNS : TYPE); i++) {
            const char *cell = table->rows[r].cells[i];
            size_t n = cell ? characters(cell) : 0;
            widths[i] = n > widths[i] ? n : widths[i];
        }
    for (int i = 0; i < INFO_COLUMNS; i++)
        if (widths[i] > 0 && widths[i] < strlen(titles[i]))
            widths[i] = strlen(titles[i]);
    const char *shown[INFO_COLUMNS];
    for (int i = 0; i < INFO_COLUMNS; i++)
        shown[i] = widths[i] > 0 ? titles[i] : NULL;
    print_line(widths, shown);
    for (size_t r = 0; r < table->n_rows; r++) {
        print_line(widths, (const char *const *)table->rows[r].cells);
        if (table->rows[r].attributes)
            fputs(table->rows[r].attributes, stdout);
    }
}

void info_table_deinit(struct info_table *table)
{
    for (size_t r = 0; r < table->n_rows; r++) {
        for (int i = 0; i < INFO_COLUMNS; i++)
            free(table->rows[r].cells[i]);
        free(table->rows[r].attributes);
    }
    free(table->rows);
}
