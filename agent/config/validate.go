package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
	"github.com/autoscaler-agent/autoscaler-agent/internal/schedule"
)

// Validate returns everything that is wrong with c, joined.
func (c Config) Validate() error {
	var errs []error
	bad := func(name string, value any, remedy string) {
		errs = append(errs, fmt.Errorf("%s_%s is %v: %s", Prefix, name, value, remedy))
	}
	told := map[string]bool{}
	judge(reflect.ValueOf(c), Variables(), func(v Variable, value, remedy string) {
		told[v.Name] = true
		bad(strings.TrimPrefix(v.Name, Prefix+"_"), value, remedy)
	})
	c.validateTogether(func(name string, value any, remedy string) {
		if !told[Prefix+"_"+name] {
			bad(name, value, remedy)
		}
	})
	for _, err := range Flatten(c.Services.validate(c.Provider)) {
		if name, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), ":", " "), " "); !told[name] { // one mistake is told once
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// validateTogether finds what one setting demands of another one.
func (c Config) validateTogether(bad func(name string, value any, remedy string)) {
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
	if err := schedule.Check(c.Scaling.DisruptionBudgets); err != nil {
		bad("SCALING_DISRUPTION_BUDGETS", "not readable", err.Error())
	}
	for _, l := range []struct {
		name     string
		min, max int64
	}{{"CORES", c.Scaling.MinCoresTotal, c.Scaling.MaxCoresTotal}, {"MEMORY", c.Scaling.MinMemoryTotal, c.Scaling.MaxMemoryTotal}} {
		if l.max > 0 && l.min > l.max {
			bad("SCALING_MIN_"+l.name+"_TOTAL", l.min, fmt.Sprintf("use a number from 0 to AUTOSCALER_SCALING_MAX_%s_TOTAL, which is %d", l.name, l.max))
		}
	}
	if b := c.Bootstrap; b.TokenMaxAge > 0 && b.TokenMaxAge < b.TokenTTL {
		bad("BOOTSTRAP_TOKEN_MAX_AGE", b.TokenMaxAge, fmt.Sprintf("use 0s (never), or AUTOSCALER_BOOTSTRAP_TOKEN_TTL (%s) or more: until then the token lives that was given out", b.TokenTTL))
	}
	if c.ListenPage && c.Listen == "off" {
		bad("LISTEN_PAGE", c.ListenPage, "use false, or set AUTOSCALER_LISTEN to the address of the page: it is off")
	}
	if names, err := all.Split(c.Provider); err == nil && c.Bootstrap.Upgrades() && !slices.Contains(names, "nova") && len(c.Bootstrap.LaunchTemplates) == 0 {
		bad("BOOTSTRAP_UPGRADE", c.Bootstrap.Upgrade, "use off, or name launch templates in AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATES: there is no user data whose version could follow")
	}
}

// Warnings are settings that are in force and that an operator may not have meant.
func (c Config) Warnings() []string {
	out := repeated(c.EnvFile)
	host, _, err := net.SplitHostPort(c.Listen)
	if addr, bad := netip.ParseAddr(host); c.ListenPage && err == nil && host != "localhost" && (bad != nil || !addr.IsLoopback()) {
		out = append(out, fmt.Sprintf("%s_LISTEN is %q and %s_LISTEN_PAGE is true: whatever reaches that address reads the names of pods and nodes; listen on 127.0.0.1, or let a firewall keep others away", Prefix, c.Listen, Prefix))
	}
	return out
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
