package report

import (
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
)

// registrar makes metrics in a registry. Names that are taken are a mistake of this
// package and panic at the start, in every test.
type registrar struct{ registry *prometheus.Registry }

func (r registrar) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.V2.NewGaugeVec(prometheus.GaugeVecOpts{GaugeOpts: prometheus.GaugeOpts{Name: name, Help: help}, VariableLabels: valid(labels)})
	r.registry.MustRegister(v)
	return v
}

func (r registrar) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.V2.NewCounterVec(prometheus.CounterVecOpts{CounterOpts: prometheus.CounterOpts{Name: name, Help: help}, VariableLabels: valid(labels)})
	r.registry.MustRegister(v)
	return v
}

func (r registrar) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.V2.NewHistogramVec(prometheus.HistogramVecOpts{HistogramOpts: prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, VariableLabels: valid(labels)})
	r.registry.MustRegister(v)
	return v
}

// summary makes one without quantiles, as Cluster Autoscaler's: it keeps no samples.
func (r registrar) summary(name, help string, labels ...string) *prometheus.SummaryVec {
	v := prometheus.V2.NewSummaryVec(prometheus.SummaryVecOpts{SummaryOpts: prometheus.SummaryOpts{Name: name, Help: help}, VariableLabels: valid(labels)})
	r.registry.MustRegister(v)
	return v
}

// valid are labels whose values are made valid UTF-8: the library panics at any other, and a name may come from
// a cloud or a file.
func valid(labels []string) prometheus.ConstrainedLabels {
	out := make(prometheus.ConstrainedLabels, 0, len(labels))
	for _, name := range labels {
		out = append(out, prometheus.ConstrainedLabel{Name: name, Constraint: func(value string) string { return strings.ToValidUTF8(value, "\uFFFD") }})
	}
	return out
}

// process registers what tells of the process: its build, process_* and go_*.
func (r registrar) process() {
	b := version.Build()
	r.gauge("autoscaler_build_info", "Always 1; the labels name the build.", "version", "commit", "goversion").
		WithLabelValues(b.Version, b.Commit, runtime.Version()).Set(1)
	// The package collectors, which has newer names for these, imports database/sql.
	//lint:ignore SA1019 see above
	r.registry.MustRegister(prometheus.NewProcessCollector(prometheus.ProcessCollectorOpts{}), prometheus.NewGoCollector())
}

// State is what the metrics ask the agent for at each scrape.
type State struct {
	Acting      func() bool   // it holds the Lease and nothing else forbids changes
	DryRun      bool          // it decides and changes nothing
	Kubernetes  func() bool   // the API server is heard
	Cloud       func() bool   // the last read of the node groups had no error
	GroupsFault func() string // why groups.yaml as it is now is not in force
}

// Watch registers the metrics of the agent's state. It is called once.
func (m *Metrics) Watch(s State) {
	as := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	for name, of := range map[string]struct {
		help  string
		value func() float64
	}{
		"autoscaler_acting":        {"1 while this agent may change the cluster and the cloud, 0 while it stands by.", func() float64 { return as(s.Acting()) }},
		"autoscaler_dry_run":       {"1 while AUTOSCALER_SCALER_DRY_RUN is true: plans are made and not carried out.", func() float64 { return as(s.DryRun) }},
		"autoscaler_kubernetes_up": {"1 while the API server is heard.", func() float64 { return as(s.Kubernetes()) }},
		"autoscaler_cloud_up":      {"1 while the last read of the node groups had no error.", func() float64 { return as(s.Cloud()) }},
	} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: of.help}, of.value))
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "autoscaler_config_last_reload_successful",
		Help: "1 while the file as it is now is in force, 0 while the last good one is.", ConstLabels: prometheus.Labels{"file": "groups.yaml"}},
		func() float64 { return as(s.GroupsFault() == "") }))
}
