package admin

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

const (
	// cellLabel says whose a series is.
	cellLabel = "cell"
	// exportedCellLabel is what a cell's own label of that name becomes, as Prometheus
	// itself would name it.
	exportedCellLabel = "exported_cell"
	// supervisorCell is the label's value for the supervisor's own series.
	supervisorCell = "supervisor"

	// maxPageBytes bounds what is read of the page of one cell: some hundred times what
	// it is.
	maxPageBytes = 16 << 20
)

// merged gathers the series of the supervisor and of its cells.
type merged struct {
	own   prometheus.Gatherer
	fleet *fleet
}

// Gather asks all cells at once. What is wrong with one costs only its own series.
func (m merged) Gather() ([]*dto.MetricFamily, error) {
	cells := slices.DeleteFunc(m.fleet.Cells(), func(c CellStatus) bool { return !c.answers() })
	type page struct {
		families []*dto.MetricFamily
		err      error
	}
	pages := each(cells, func(c CellStatus) page {
		families, err := m.fleet.scrape(c.Cell)
		return page{families, err}
	})

	own, err := m.own.Gather()
	// The first to speak of a family says what it is for: words that differ are no
	// reason to lose numbers.
	helps := make(map[string]*string)
	for _, f := range own {
		helps[f.GetName()] = f.Help
		for _, series := range f.Metric {
			// A series about a cell keeps its number.
			if !slices.ContainsFunc(series.Label, isCellLabel) {
				setCell(series, supervisorCell)
			}
		}
	}
	all := prometheus.Gatherers{gathered(own, err)}
	failed := &dto.MetricFamily{
		Name: new("cell_scrape_failed"),
		Help: new("1 if the series of the cell are missing on this page, else 0."),
		Type: dto.MetricType_GAUGE.Enum(),
	}
	for i, p := range pages {
		c, value := cells[i], 0.0
		if p.err != nil {
			if !m.fleet.still(c) {
				continue // it ended meanwhile
			}
			m.fleet.log.Warn("cell could not be scraped", "cell", c.Cell, "error", plain(p.err))
			value = 1
		}
		number := strconv.Itoa(c.Cell)
		series := &dto.Metric{Gauge: &dto.Gauge{Value: &value}}
		setCell(series, number)
		failed.Metric = append(failed.Metric, series)
		for _, f := range p.families {
			if help, ok := helps[f.GetName()]; ok {
				f.Help = help
			}
			helps[f.GetName()] = f.Help
			for _, series := range f.Metric {
				for _, l := range series.Label {
					if isCellLabel(l) {
						l.Name = new(exportedCellLabel)
					}
				}
				setCell(series, number)
			}
		}
		all = append(all, gathered(p.families, nil))
	}
	if len(failed.Metric) > 0 {
		all = append(all, gathered([]*dto.MetricFamily{failed}, nil))
	}
	// Finds what does not fit together, such as a family of two types, and leaves out
	// that alone.
	return all.Gather()
}

// gathered is a Gatherer of what is there already.
func gathered(families []*dto.MetricFamily, err error) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families, err })
}

func isCellLabel(l *dto.LabelPair) bool { return l.GetName() == cellLabel }

// setCell adds the label. Labels stay sorted: only then does Gatherers find a name that is
// there twice.
func setCell(series *dto.Metric, value string) {
	series.Label = append(series.Label, &dto.LabelPair{Name: new(cellLabel), Value: &value})
	slices.SortStableFunc(series.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
}

// scrape reads the page of one cell.
func (f *fleet) scrape(cell int) (_ []*dto.MetricFamily, err error) {
	defer func() {
		// Parsers have their faults, and a supervisor must not die of what a cell says.
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), f.scrapeTimeout)
	defer cancel()
	// The only format that keeps all: what a family is called, is for and is.
	resp, err := f.get(ctx, cell, "/metrics", string(expfmt.FmtProtoDelim))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	if format := expfmt.ResponseFormat(resp.Header); format.FormatType() != expfmt.TypeProtoDelim {
		return nil, fmt.Errorf("unexpected content type %q", resp.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPageBytes+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxPageBytes {
		return nil, fmt.Errorf("the page is larger than %d bytes", maxPageBytes)
	}
	return parse(body)
}

var errFrame = errors.New("a message is longer than the page")

// parse reads families in the delimited protobuf format.
func parse(body []byte) ([]*dto.MetricFamily, error) {
	// The decoder allocates whatever length a message claims to have.
	for rest := body; len(rest) > 0; {
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) {
			return nil, errFrame
		}
		rest = rest[n+int(size):]
	}
	var families []*dto.MetricFamily
	decoder := expfmt.NewDecoder(bytes.NewReader(body), expfmt.FmtProtoDelim)
	for {
		f := new(dto.MetricFamily)
		err := decoder.Decode(f)
		if errors.Is(err, io.EOF) {
			return families, nil
		}
		if err != nil {
			return nil, err
		}
		families = append(families, f)
	}
}
