package amount

import "strings"

// Nearest returns the known word that a mistyped one most likely means: at most a third of its letters are different.
// "" is none.
func Nearest(word string, known []string) string {
	best, least := "", len(word)/3+1
	for _, k := range known {
		d := Distance(strings.ToLower(word), strings.ToLower(k))
		if strings.HasPrefix(k, word) && len(word) > 1 {
			d = 0
		}
		if d <= least && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

// Distance returns how many letters are to be added, left out, changed or swapped with their neighbour to make b of a.
func Distance(a, b string) int {
	before, row := []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			differs := 1
			if a[i] == b[j] {
				differs = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+differs)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
