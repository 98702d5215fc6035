// Package alerts judges deploy/prometheus/alerts.yaml and deploy/grafana/dashboard.json with
// Prometheus' own parser, rule evaluation and query engine.
//
// It refuses to run a Prometheus: series are loaded into its storage in memory, and time is
// the time of the samples.
package alerts

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
)

// file is a file of the repository.
func file(name string) string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "../../..", name)
}

// Rules are the alert rules that ship, checked as `promtool check rules` checks them.
func Rules(t testing.TB) []*rules.AlertingRule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(file("deploy/prometheus/alerts.yaml"), false)
	for _, err := range errs {
		t.Fatal(err)
	}
	var out []*rules.AlertingRule
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			expr, err := parser.ParseExpr(r.Expr)
			if err != nil {
				t.Fatalf("%s: %v", r.Alert, err)
			}
			out = append(out, rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), time.Duration(r.KeepFiringFor),
				labels.FromMap(r.Labels), labels.FromMap(r.Annotations), labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler)))
		}
	}
	return out
}

// Firing evaluates a rule each minute from start to end and tells when it first fired, and
// with which summary; zero: never.
func Firing(t testing.TB, r *rules.AlertingRule, in storage.Queryable, start, end time.Time) (at time.Time, summary string) {
	t.Helper()
	query := rules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000), in)
	for now := start; !now.After(end); now = now.Add(time.Minute) {
		if _, err := r.Eval(context.Background(), 0, now, query, nil, 0); err != nil {
			t.Fatalf("%s: %v", r.Name(), err)
		}
		for _, a := range r.ActiveAlerts() {
			if a.State == rules.StateFiring {
				return now, a.Annotations.Get("summary")
			}
		}
	}
	return time.Time{}, ""
}

// Scrape is one answer of /metrics.
type Scrape struct {
	At   time.Time
	Text []byte
}

// Load puts scrapes into a storage as Prometheus would, with the labels instance and job.
func Load(t testing.TB, scrapes []Scrape) *teststorage.TestStorage {
	t.Helper()
	store := teststorage.New(t)
	for _, s := range scrapes {
		app := store.Appender(context.Background())
		each(t, s.Text, func(l labels.Labels, value float64) {
			b := labels.NewBuilder(l)
			b.Set("instance", "leader:8085").Set("job", "autoscaler-agent")
			if _, err := app.Append(0, b.Labels(), s.At.UnixMilli(), value); err != nil {
				t.Fatal(err)
			}
		})
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// Names are the metrics of a scrape.
func Names(t testing.TB, text []byte) map[string]bool {
	out := map[string]bool{}
	each(t, text, func(l labels.Labels, _ float64) { out[l.Get(labels.MetricName)] = true })
	return out
}

// each yields the series of an answer of /metrics.
func each(t testing.TB, text []byte, yield func(labels.Labels, float64)) {
	t.Helper()
	p, err := textparse.New(text, "text/plain", "", false, false, false, labels.NewSymbolTable())
	if err != nil {
		t.Fatal(err)
	}
	for {
		entry, err := p.Next()
		if err != nil {
			return // io.EOF: the parser has no other way to end
		}
		if entry == textparse.EntrySeries {
			var l labels.Labels
			_, _, value := p.Series()
			p.Labels(&l)
			yield(l, value)
		}
	}
}

// Query is a query of the dashboard or of an alert.
type Query struct{ Where, Expr string }

// Queries are all queries of the rules and of the dashboard, those of its variables
// included.
func Queries(t testing.TB) []Query {
	t.Helper()
	var out []Query
	for _, r := range Rules(t) {
		out = append(out, Query{"alert " + r.Name(), r.Query().String()})
	}
	for _, p := range Board(t).Panels {
		for _, target := range p.Targets {
			out = append(out, Query{"panel " + p.Title, Plain(target.Expr)})
		}
	}
	return out
}

// Plain is a query with the dashboard's variables filled in.
func Plain(expr string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$group", ".*").Replace(expr)
}

// Dashboard is the part of Grafana's JSON model that the dashboard uses. A field beyond it
// is an error, so that a misspelt one is.
type Dashboard struct {
	UID, Title, Description, Refresh, Timezone string
	Tags                                       []string
	SchemaVersion, Version, GraphTooltip       int
	Editable                                   bool
	Time                                       struct{ From, To string }
	Annotations                                struct{ List []any }
	Links                                      []any
	Templating                                 struct{ List []Variable }
	Panels                                     []Panel
}

// Variable is one of templating.list.
type Variable struct {
	Name, Label, Type, AllValue string
	Query                       any
	Datasource                  *Source
	Hide, Refresh, Sort         int
	IncludeAll, Multi           bool
	Options                     []any
	Current                     map[string]any
}

// Source is a reference to a data source.
type Source struct{ Type, UID string }

// Panel is one picture.
type Panel struct {
	ID                       int
	Type, Title, Description string
	Collapsed                bool
	Panels                   []Panel
	GridPos                  struct{ H, W, X, Y int }
	Datasource               *Source
	Targets                  []struct {
		RefID, Expr, LegendFormat, EditorMode string
		Datasource                            *Source
		Range                                 bool
	}
	FieldConfig struct {
		Defaults struct {
			Unit       string
			Min        *float64
			Mappings   []any
			Thresholds *struct {
				Mode  string
				Steps []struct {
					Color string
					Value *float64
				}
			}
			Custom map[string]any
		}
		Overrides []any
	}
	Options map[string]any
}

// Board is the dashboard that ships.
func Board(t testing.TB) Dashboard {
	t.Helper()
	f, err := os.Open(file("deploy/grafana/dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only read
	var d Dashboard
	decoder := json.NewDecoder(f)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Selects are the metrics that a query reads.
func Selects(t testing.TB, q Query) (names []string) {
	t.Helper()
	expr, err := parser.ParseExpr(q.Expr)
	if err != nil {
		t.Fatalf("%s: %v", q.Where, err)
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			names = append(names, v.Name)
		}
		return nil
	})
	if len(names) == 0 {
		t.Fatal(fmt.Errorf("%s reads no metric: %s", q.Where, q.Expr))
	}
	return names
}

// Aged is a scrape as it is later if nothing happens but rounds: last_activity goes on.
func Aged(text []byte, later time.Duration) []byte {
	var out []byte
	for line := range strings.Lines(string(text)) {
		if series, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && strings.HasPrefix(line, "cluster_autoscaler_last_activity{") {
			if at, err := strconv.ParseFloat(value, 64); err == nil {
				line = series + "} " + strconv.FormatFloat(at+later.Seconds(), 'g', -1, 64) + "\n"
			}
		}
		out = append(out, line...)
	}
	return out
}
