/* Natural order of names: file2 comes before file10. Pure. */
#pragma once

/* Below 0, 0, above 0, as strcmp(); 0 for equal texts alone. */
int natural_compare(const char *a, const char *b);
