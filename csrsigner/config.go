package csrsigner

import (
	"net/netip"
	"time"
)

// Config is read from AUTOSCALER_CSR_* (envconfig, nested by package agent).
type Config struct {
	// Enabled switches the service on.
	Enabled bool `envconfig:"ENABLED" default:"true" desc:"Whether kubelets' certificates are approved; without it the join is open."`
	// InventoryMaxAge is the oldest read of the cloud that an approval may rest on (R15).
	InventoryMaxAge time.Duration `envconfig:"INVENTORY_MAX_AGE" default:"30s" range:"1s..1h" desc:"Oldest read of the cloud that an approval may rest on."`
	// MaxExpiration is the longest certificate life that a kubelet may ask for (R8).
	MaxExpiration time.Duration `envconfig:"MAX_EXPIRATION" default:"8760h" range:"10m..87600h" desc:"Longest life of a certificate that a kubelet may ask for."`
	// PerNodeHour is how many requests of one Node are decided in an hour (R17).
	PerNodeHour int `envconfig:"PER_NODE_HOUR" default:"6" range:"1..100000" desc:"Most requests of one Node that are decided in an hour."`
	// WarnAfter is how long a request waits before a Warning event says why.
	WarnAfter time.Duration `envconfig:"WARN_AFTER" default:"15m" range:"1s..168h" desc:"How long a request waits before a Warning says why."`
	// ServiceCIDRs are the cluster's service ranges; empty: asked from the cluster.
	ServiceCIDRs []string `envconfig:"SERVICE_CIDRS" form:"network" desc:"Service ranges of the cluster; empty: asked from it."`
	// DNSDomain is the cluster's domain; empty: kubeadm-config's, else cluster.local.
	DNSDomain string `envconfig:"DNS_DOMAIN" form:"domain" desc:"Domain of the cluster; empty: asked from it, else cluster.local."`
	// ForbiddenNames are more names and addresses that no worker may have (R9).
	ForbiddenNames []string `envconfig:"FORBIDDEN_NAMES" form:"host" desc:"More names and addresses that no worker may have, comma-separated."`
	// ExtraNames are templates of DNS names that every machine has, and that its Node may
	// bear, beside those that the cloud tells: {{node}}, {{instance}}, {{zone}} and {{region}} stand for its own.
	ExtraNames []string `envconfig:"EXTRA_NAMES" form:"name template" desc:"Templates of more DNS names of every machine, such as {{node}}.corp.example."`
	// SelfNames are more names and addresses of the machine that the agent runs on (R16),
	// for example its public address.
	SelfNames []string `envconfig:"SELF_NAMES" form:"host" desc:"More names and addresses of the agent's own machine."`
	// Join is "closed": the agent alone approves the client certificates of machines that
	// join with its tokens; or "open": kubeadm's bindings do, for whoever has a token.
	Join string `envconfig:"JOIN" default:"closed" oneof:"closed,open" desc:"closed: the agent alone lets machines join with its tokens; open: kubeadm's automatic approval does."`
	// JoinWindow is how long after its launch an instance may ask for its client
	// certificate (J12).
	JoinWindow time.Duration `envconfig:"JOIN_WINDOW" default:"2h" range:"1m..8760h" desc:"How long after its launch an instance may ask to join."`
	// AlarmPending is how many requests may wait, beside one for each Node, before the
	// flood alarm rings; 0: it never does.
	AlarmPending int `envconfig:"ALARM_PENDING" default:"100" range:"0..1000000" desc:"So many requests may wait before the flood alarm rings; 0: it never does."`
	// AllowedRanges are loopback or link-local ranges that machines really have, for
	// clusters that live on one host. The API server's own addresses stay forbidden.
	AllowedRanges []string `envconfig:"ALLOWED_RANGES" form:"network" desc:"Loopback or link-local ranges that machines really have, for clusters on one host."`
}

// The values of Config.Join. Empty is open.
const (
	JoinClosed = "closed"
	JoinOpen   = "open"
)

// prefixes parses what package config has accepted.
func prefixes(list []string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		if p, err := netip.ParsePrefix(s); err == nil {
			out = append(out, p.Masked())
		}
	}
	return out
}
