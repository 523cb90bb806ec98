package stats

// Kind says what sort of number a family holds.
type Kind uint8

// The kinds of family.
const (
	KindCounter Kind = iota + 1
	KindGauge
	KindHistogram
)

// String is the name of the kind in lower case.
func (k Kind) String() string {
	switch k {
	case KindCounter:
		return "counter"
	case KindGauge:
		return "gauge"
	case KindHistogram:
		return "histogram"
	}
	return "unknown"
}

// Family is the state of one family when the snapshot was taken.
type Family struct {
	Name       string
	Help       string
	Kind       Kind
	LabelNames []string
	Series     []Series
}

// Series is the state of one combination of label values.
type Series struct {
	LabelValues []string // as many as the family's LabelNames
	Value       float64  // counters and gauges

	// Histograms only.
	Buckets []Bucket // ascending; the one above all bounds is left out, its count is Count
	Sum     float64  // seconds
	Count   uint64
}

// Bucket is one bucket of a histogram.
type Bucket struct {
	UpperBound float64 // seconds, inclusive
	Count      uint64  // observations at or below UpperBound: cumulative
}
