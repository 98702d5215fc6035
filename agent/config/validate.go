package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
	"github.com/autoscaler-agent/autoscaler-agent/internal/schedule"
)

// socketLimit is the longest path of a unix socket on Linux: sun_path without its NUL.
const socketLimit = 107

// Validate returns everything that is wrong with c, joined.
func (c Config) Validate() error {
	var errs []error
	bad := func(name string, value any, remedy string) {
		errs = append(errs, fmt.Errorf("%s_%s is %v: %s", Prefix, name, value, remedy))
	}
	if _, err := all.Split(c.Provider); err != nil {
		bad("PROVIDER", fmt.Sprintf("%q", c.Provider), err.Error()+"; several are separated by commas")
	}
	if level, err := logrus.ParseLevel(c.LogLevel); err != nil || level < logrus.ErrorLevel || level > logrus.DebugLevel {
		bad("LOG_LEVEL", fmt.Sprintf("%q", c.LogLevel), "use debug, info, warn or error")
	}
	if c.Listen != "off" {
		_, port, err := net.SplitHostPort(c.Listen)
		if _, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil {
			bad("LISTEN", fmt.Sprintf("%q", c.Listen), "write host:port, for example 127.0.0.1:8085, or off")
		}
	}
	c.validateNames(bad)
	noNumber := map[string]bool{}
	outOfRange(reflect.ValueOf(c), Variables(), func(v Variable, value any, remedy string) {
		if f, ok := value.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			noNumber[v.Name] = true
		}
		bad(strings.TrimPrefix(v.Name, Prefix+"_"), value, remedy)
	})
	for _, d := range []struct {
		name         string
		value, least time.Duration
	}{
		{"SCALER_CAP", c.Scaler.Cap, c.Scaler.Quiet}, {"OBSERVE_SLOW", c.Observe.Slow, c.Observe.Fast},
		{"OBSERVE_STALE_AFTER", c.Observe.StaleAfter, c.Lease.RetryPeriod + time.Second},
		{"SCALING_BACKOFF_MAX", c.Scaling.BackoffMax, c.Scaling.BackoffInitial},
		{"LEASE_RENEW_DEADLINE", c.Lease.RenewDeadline, c.Lease.RetryPeriod * 6 / 5},
		{"LEASE_DURATION", c.Lease.Duration, c.Lease.RenewDeadline + time.Second},
	} {
		if d.value < d.least {
			bad(d.name, d.value, fmt.Sprintf("use %s or more", d.least))
		}
	}
	c.validateScaling(bad)
	for _, err := range Flatten(c.Services.validate(c.Provider)) {
		name, _, _ := strings.Cut(err.Error(), ":")
		if !noNumber[name] { // the services judge the range of a number
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// validateNames reports paths and names that nothing can have.
func (c Config) validateNames(bad func(name string, value any, remedy string)) {
	if len(c.Socket) > socketLimit {
		bad("SOCKET", fmt.Sprintf("%q", c.Socket), fmt.Sprintf("a socket's path has at most %d characters, this one has %d: write a shorter one", socketLimit, len(c.Socket)))
	}
	for _, p := range []struct{ name, value string }{{"SOCKET", c.Socket}, {"GROUPS_FILE", c.GroupsFile}} {
		if p.value != "" && p.value != "off" && !strings.HasPrefix(p.value, "/") {
			bad(p.name, fmt.Sprintf("%q", p.value), "write an absolute path: the unit runs in /")
		}
	}
	for _, n := range []struct{ name, value string }{{"NODE_NAME", c.NodeName}, {"LEASE_NAME", c.Lease.Name}, {"LEASE_NAMESPACE", c.Lease.Namespace}} {
		if n.value != "" && len(validation.IsDNS1123Subdomain(n.value)) > 0 {
			bad(n.name, fmt.Sprintf("%q", n.value), "write a name as Kubernetes has them: small letters, digits, - and ., a letter or digit at both ends")
		}
	}
	if c.StateDir == "" || !strings.HasPrefix(c.StateDir, "/") {
		bad("STATE_DIR", fmt.Sprintf("%q", c.StateDir), "write an absolute path, for example /var/lib/autoscaler-agent")
	}
}

// mostGiB is more memory than a cluster has: a larger number is meant in bytes.
const mostGiB = 1 << 24

// validateScaling reports what the tags of the policy cannot say.
func (c Config) validateScaling(bad func(name string, value any, remedy string)) {
	if err := schedule.Check(c.Scaling.DisruptionBudgets); err != nil {
		bad("SCALING_DISRUPTION_BUDGETS", "not readable", err.Error())
	}
	if unknown := plan.UnknownExpanders(c.Scaling.Expander); len(unknown) > 0 || strings.HasPrefix(c.Scaling.Expander, ",") || strings.HasSuffix(strings.TrimSpace(c.Scaling.Expander), ",") {
		bad("SCALING_EXPANDER", fmt.Sprintf("%q", c.Scaling.Expander), "use "+strings.Join(plan.Expanders(), ", ")+", or several of them, comma-separated")
	}
	for _, l := range []struct {
		name     string
		min, max int64
	}{{"CORES", c.Scaling.MinCoresTotal, c.Scaling.MaxCoresTotal}, {"MEMORY", c.Scaling.MinMemoryTotal, c.Scaling.MaxMemoryTotal}} {
		for _, bound := range []struct {
			name  string
			value int64
		}{{"MIN_", l.min}, {"MAX_", l.max}} {
			if l.name == "MEMORY" && bound.value > mostGiB {
				bad("SCALING_"+bound.name+"MEMORY_TOTAL", bound.value, fmt.Sprintf("the unit is GiB: write %d for so many bytes", max(bound.value>>30, 1)))
			}
		}
		if l.max > 0 && l.min > l.max {
			bad("SCALING_MIN_"+l.name+"_TOTAL", l.min, fmt.Sprintf("use a number from 0 to AUTOSCALER_SCALING_MAX_%s_TOTAL, which is %d", l.name, l.max))
		}
	}
}

// Flatten takes a tree of joined errors apart.
func Flatten(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, Flatten(e)...)
		}
		return out
	}
	return []error{err}
}
