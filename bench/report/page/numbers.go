package page

import (
	"math"
	"strconv"
	"strings"

	"pinion/bench/record"
)

// none stands where nothing was measured.
const none = "–"

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// digits writes x with three significant digits and a comma between thousands.
func digits(x float64) string {
	if !finite(x) {
		return none
	}
	rounded := strconv.FormatFloat(x, 'e', 2, 64)
	x, _ = strconv.ParseFloat(rounded, 64) // just written
	exponent, _ := strconv.Atoi(rounded[strings.IndexByte(rounded, 'e')+1:])
	if x == 0 {
		return "0"
	}
	return thousands(strconv.FormatFloat(x, 'f', max(0, 2-exponent), 64))
}

// tick makes of what writes a figure one that leaves out the zeros by which a measured one
// tells how exact it is.
func tick(format func(float64) string) func(float64) string {
	return func(x float64) string {
		figure, unit, _ := strings.Cut(format(x), " ")
		if strings.Contains(figure, ".") {
			figure = strings.TrimRight(strings.TrimRight(figure, "0"), ".")
		}
		return strings.TrimSpace(figure + " " + unit)
	}
}

// thousands puts commas into the digits before the point.
func thousands(s string) string {
	end := strings.IndexByte(s, '.')
	if end < 0 {
		end = len(s)
	}
	for i := end - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func count(n int64) string { return thousands(strconv.FormatInt(n, 10)) }

// three writes x with three decimals: what is judged has to be told apart from its limit.
func three(x float64) string {
	if !finite(x) {
		return none
	}
	return thousands(strconv.FormatFloat(x, 'f', 3, 64))
}

// duration writes microseconds in the unit that suits them.
func duration(micros float64) string {
	switch {
	case !finite(micros):
		return none
	case micros < 999.5:
		return digits(micros) + " µs"
	case micros < 999.5e3:
		return digits(micros/1e3) + " ms"
	}
	return digits(micros/1e6) + " s"
}

// bytesOf writes a size in the unit that suits it.
func bytesOf(n float64) string {
	units := []string{" B", " KiB", " MiB", " GiB"}
	if !finite(n) {
		return none
	}
	for len(units) > 1 && n >= 1000 {
		n /= 1024
		units = units[1:]
	}
	return digits(n) + units[0]
}

func percent(part float64) string {
	if !finite(part) {
		return none
	}
	return strconv.FormatFloat(part*100, 'f', 0, 64) + " %"
}

// spread writes a figure as in "12.3 † (11.8 to 14.0)", one that was measured once alone.
// In a table the brackets may go into a line of their own.
func spread(s record.Spread, format func(float64) string, mark string) string {
	if s.N == 0 {
		return none
	}
	return format(s.Median) + mark + extremes(s, format)
}

func extremes(s record.Spread, format func(float64) string) string {
	if s.N < 2 {
		return ""
	}
	return broken + "(" + format(s.Min) + " to " + format(s.Max) + ")"
}

// hundredths writes what is as good as zero below a hundredth, on either side of it.
func hundredths(x float64) string {
	if math.Abs(x) < 0.01 {
		return "0.00"
	}
	return digits(x)
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(strconv.Itoa(n)) + " " + one + "s"
}
