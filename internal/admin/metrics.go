package admin

import (
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"pinion/internal/stats"
)

// maxScrapes bounds what many scrapers at once can cost; the others get a 503.
const maxScrapes = 4

func metricsHandler(cfg Config, fleet *fleet) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister( // fails only for names that are registered twice: not these
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(cfg.Version),
	)
	if cfg.Stats != nil {
		reg.MustRegister(collector{cfg.Stats})
	}
	var all prometheus.Gatherer = reg
	if fleet != nil {
		all = merged{own: reg, fleet: fleet}
	}
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
		// One bad family must not hide the others.
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
	})
}

// buildInfo is a gauge that is always 1, and says in its labels what runs.
func buildInfo(version string) prometheus.Collector {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if version == "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "build_info",
		Help: "Always 1; the labels say what was built from what.",
		ConstLabels: prometheus.Labels{
			"version": version, "revision": revision, "goversion": runtime.Version(),
		},
	}, func() float64 { return 1 })
}

// collector shows a stats.Registry to Prometheus.
type collector struct {
	stats *stats.Registry
}

// Describe sends nothing, which tells Prometheus not to check in advance: families
// may be registered after the port is up.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends every series of a new snapshot.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	for _, f := range c.stats.Snapshot() {
		desc := prometheus.NewDesc(f.Name, f.Help, f.LabelNames, nil)
		for _, s := range f.Series {
			m, err := metric(desc, f.Kind, s)
			if err != nil {
				m = prometheus.NewInvalidMetric(desc, err)
			}
			ch <- m
		}
	}
}

func metric(desc *prometheus.Desc, kind stats.Kind, s stats.Series) (prometheus.Metric, error) {
	switch kind {
	case stats.KindCounter:
		return prometheus.NewConstMetric(desc, prometheus.CounterValue, s.Value, s.LabelValues...)
	case stats.KindHistogram:
		buckets := make(map[float64]uint64, len(s.Buckets))
		for _, b := range s.Buckets {
			buckets[b.UpperBound] = b.Count
		}
		return prometheus.NewConstHistogram(desc, s.Count, s.Sum, buckets, s.LabelValues...)
	default:
		return prometheus.NewConstMetric(desc, prometheus.GaugeValue, s.Value, s.LabelValues...)
	}
}
