/* Words, texts, and filling an error. */
#include "proto/error.h"
#include "proto/text.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

Test(error, every_status_has_a_word_that_leads_back_to_it)
{
    for (int i = 1; i < GAD_STATUS_COUNT; i++) {
        const char *word = error_word(i);
        cr_assert(lt(sz, 0, strlen(word)));
        cr_assert(eq(int, error_from_word(word, (unsigned)strlen(word)), i), "%s", word);
        cr_assert(lt(sz, 0, strlen(error_text(i))));
    }
    cr_assert(eq(str, (char *)error_word(0), "ok"));
    cr_assert(eq(str, (char *)error_word(GAD_TOO_LARGE_FOR_POOL), "too-large-for-pool"));
}

Test(error, words_behind_those_of_a_group_are_of_the_group)
{
    cr_assert(eq(int, error_from_word("bad-index", 9), GAD_BAD_INDEX));
    cr_assert(lt(int, GAD_BAD_ARGUMENT, GAD_BAD_INDEX));
    cr_assert(lt(int, GAD_BAD_INDEX, GAD_PROTOCOL));
}

Test(error, unknown_numbers_and_words_are_internal)
{
    cr_assert(eq(str, (char *)error_word(-5), "internal"));
    cr_assert(eq(str, (char *)error_word(GAD_STATUS_COUNT), "internal"));
    cr_assert(eq(int, error_from_word("no-such-word", 12), GAD_INTERNAL));
    cr_assert(eq(int, error_from_word("bad-shape", 3), GAD_INTERNAL));
    cr_assert(eq(int, error_from_word("", 0), GAD_INTERNAL));
}

Test(error, set_fills_everything_and_clears_the_rest)
{
    struct gad_error error;
    memset(&error, 'x', sizeof(error));
    int r = error_set(&error, GAD_BAD_SHAPE, "a", "%d dimensions", 33);
    cr_assert(eq(int, r, GAD_BAD_SHAPE));
    cr_assert(eq(int, error.status, GAD_BAD_SHAPE));
    cr_assert(eq(str, error.argument, "a"));
    cr_assert(eq(str, error.message, "33 dimensions"));
    cr_assert(eq(str, error.expected, ""));
    error_expected(&error, "at most %d", 32);
    error_found(&error, "%d", 33);
    cr_assert(eq(str, error.expected, "at most 32"));
    cr_assert(eq(str, error.found, "33"));
}

Test(error, may_quote_its_own_old_message)
{
    struct gad_error error;
    (void)error_set(&error, GAD_BAD_SHAPE, "old", "inner");
    (void)error_set(&error, GAD_BAD_DTYPE, error.argument, "outer: %s", error.message);
    cr_assert(eq(str, error.message, "outer: inner"));
    cr_assert(eq(str, error.argument, "old"));
}

Test(error, null_errors_and_arguments_are_allowed)
{
    cr_assert(eq(int, error_set(NULL, GAD_BUSY, NULL, "x"), GAD_BUSY));
    error_expected(NULL, "x");
    error_found(NULL, "x");
    struct gad_error error;
    (void)error_set(&error, GAD_BUSY, NULL, "x");
    cr_assert(eq(str, error.argument, ""));
}

Test(error, texts_are_cut_and_stay_valid_utf8)
{
    struct gad_error error;
    char name[400];
    memset(name, 'n', sizeof(name));
    memcpy(name + 62, "\xe2\x82\xac", 3); /* a character across the end of the field */
    name[sizeof(name) - 1] = '\0';
    (void)error_set(&error, GAD_BUSY, name, "%s", name);
    cr_assert(eq(sz, strlen(error.argument), sizeof(error.argument) - 1));
    cr_assert(text_is_printable(error.argument, strlen(error.argument)));
    cr_assert(eq(sz, strlen(error.message), sizeof(error.message) - 1));
}

Test(error, what_a_peer_wrote_is_made_printable)
{
    struct gad_error error;
    (void)error_set(&error, GAD_BUSY, "a\nb", "\x1b[31m \xff caf\xc3\xa9 \xc2\x85");
    cr_assert(eq(str, error.argument, "a?b"));
    cr_assert(eq(str, error.message, "?[31m ? caf\xc3\xa9 ??"));
}

Test(error, errno_becomes_a_domain_fault)
{
    static const struct {
        int number;
        enum gad_status status;
    } rows[] = {
        {ENOSPC, GAD_NO_SPACE},  {EDQUOT, GAD_NO_SPACE},  {EACCES, GAD_PERMISSION},
        {EPERM, GAD_PERMISSION}, {ENOENT, GAD_NOT_FOUND}, {ENOMEM, GAD_NO_MEMORY},
        {EROFS, GAD_READ_ONLY},  {EBADF, GAD_READ_ONLY},  {EIO, GAD_IO_ERROR},
        {12345, GAD_IO_ERROR},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gad_error error;
        int r = error_from_errno(&error, rows[i].number, "out", "pwrite");
        cr_assert(eq(int, r, rows[i].status), "errno %d", rows[i].number);
        cr_assert(eq(str, error.argument, "out"));
        cr_assert(eq(int, strncmp(error.message, "pwrite: ", 8), 0));
    }
}

Test(text, characters_are_those_of_utf8)
{
    static const struct {
        const char *text;
        size_t n;
    } rows[] = {
        {"a", 1},
        {"\xc3\xa9", 2},
        {"\xe2\x82\xac", 3},
        {"\xf0\x9f\x98\x80", 4},
        {"\x80", 0},
        {"\xc0\x80", 0},
        {"\xc1\xbf", 0},
        {"\xe0\x80\x80", 0},
        {"\xed\xa0\x80", 0},
        {"\xf0\x80\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xf4\x90\x80\x80", 0},
        {"\xe2\x82", 0},
        {"\xc3", 0},
        {"\xc3"
         "a",
         0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        cr_assert(eq(sz, text_character_bytes(rows[i].text, strlen(rows[i].text)), rows[i].n),
                  "row %zu", i);
    cr_assert(eq(sz, text_character_bytes("", 0), 0));
}

Test(text, identifiers_are_ascii_words)
{
    cr_assert(text_is_identifier("_a9", 3));
    cr_assert(text_is_identifier("Z", 1));
    cr_assert(not(text_is_identifier("", 0)));
    cr_assert(not(text_is_identifier("9a", 2)));
    cr_assert(not(text_is_identifier("a-b", 3)));
    cr_assert(not(text_is_identifier("a\0b", 3)));
    cr_assert(not(text_is_identifier("\xc3\xa9", 2)));
}

Test(text, control_characters_are_not_printable)
{
    static const char *const hidden[] = {
        "\x7f",         "\xc2\x9b",     "\xd8\x9c",     "\xe2\x80\x8f",     "\xe2\x80\xae",
        "\xe2\x80\xa8", "\xe2\x81\xa6", "\xef\xbb\xbf", "\xf3\xa0\x80\xa0",
    };
    cr_assert(text_is_printable("caf\xc3\xa9", 5));
    cr_assert(text_is_printable("\xd7\xa9\xd7\x9c\xe2\x80\x93\xe2\x80\x8d", 10));
    cr_assert(text_is_printable("", 0));
    cr_assert(not(text_is_printable("a\0", 2)));
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        cr_assert(not(text_is_printable(hidden[i], strlen(hidden[i]))), "row %zu", i);
}

Test(text, a_quoted_text_cannot_leave_its_quotation_marks)
{
    char quoted[32];

    cr_assert(eq(sz, text_quote("x\" UID=0", quoted, sizeof(quoted)), 12));
    cr_assert(eq(str, quoted, "\"x\\\" UID\\=0\""));
    text_quote("\\\xe2\x80\xae\xc3\xa9\xff\n", quoted, sizeof(quoted));
    cr_assert(eq(str, quoted, "\"\\\\?\xc3\xa9??\""));
    cr_assert(eq(sz, text_quote("", quoted, 3), 2));
    cr_assert(eq(sz, text_quote("abc", quoted, 2), 0));
}

Test(text, a_quoted_text_is_cut_between_characters)
{
    char quoted[8];

    text_quote("abcde\xc3\xa9", quoted, sizeof(quoted));
    cr_assert(eq(str, quoted, "\"abcde\""));
    text_quote("abcd\"", quoted, sizeof(quoted));
    cr_assert(eq(str, quoted, "\"abcd\""));
}
