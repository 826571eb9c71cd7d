package league

import "math"

// Fit is the power of n that values grow with, and the line a + b·n nearest to them.
type Fit struct{ Power, Base, Each float64 }

// Grow fits values measured at several n, by least squares; the power between the logarithms, where all are positive.
func Grow(n, values []float64) Fit {
	base, each := line(n, values)
	var ln, lv []float64
	for i := range n {
		if n[i] > 0 && values[i] > 0 {
			ln, lv = append(ln, math.Log(n[i])), append(lv, math.Log(values[i]))
		}
	}
	_, power := line(ln, lv)
	return Fit{power, base, each}
}

func line(x, y []float64) (base, slope float64) {
	var sx, sy, sxx, sxy float64
	n := float64(len(x))
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	if d := n*sxx - sx*sx; d != 0 {
		slope = (n*sxy - sx*sy) / d
		return (sy - slope*sx) / n, slope
	}
	return sy / max(n, 1), 0
}
