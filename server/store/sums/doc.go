// Package sums keeps sums of what is stored, in either database, so that an answer costs what it shows and not what
// there is. Whoever stores lines pays nothing for them: a row that a sum does not have as it is now is in an index, and
// its difference is added by whoever asks, until SumUp has put it into the sum. So sums are exact at any time.
package sums
