package openstack

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options of New. Zero values are usable.
type Options struct {
	Regions     []string      // default RegionOne; the first is the one that Cloud's own methods work on
	Zones       []string      // availability zones of each region; default nova
	BuildDelay  time.Duration // from BUILD to ACTIVE
	DeleteDelay time.Duration // from DELETE to 404
	FailDelay   time.Duration // from BUILD to ERROR; zero: BuildDelay
	TokenTTL    time.Duration // default an hour
	// TokenCache is how long a service remembers that a token was good: a revoked one
	// works so long. Real services remember for 300 s.
	TokenCache      time.Duration
	MaxMicroversion string  // of Nova, default 2.93 (Zed)
	PageLimit       int     // servers in one page; default 1000
	Jitter          float64 // share by which delays vary, by Seed
	Seed            uint64
	// OnState is told of every change of a server's status, outside of any lock and in
	// order; DELETED is told when it is gone.
	OnState func(s Server, old, now string)
	Log     io.Writer // one line for each request; nil: none
}

// Cloud is one OpenStack. Its methods may be called from any goroutine. Those of the
// embedded Region work on its first region.
type Cloud struct {
	*Region
	opts    Options
	http    *http.Server
	address string
	started time.Time

	mu          sync.Mutex
	regions     map[string]*Region
	order       []string
	identity    *identity
	credentials []map[string]any // application credentials that were made, as Keystone shows them once
	faults      []*armed
	calls       []Call
	services    map[string]service // by type, those that others added
	magnum      *magnum
	consoles    map[string]string // by server
	rng         *mathrand.Rand
	closed      bool
	timers      map[*time.Timer]bool
	told        chan func()
	done        chan struct{}
}

// service is an API that another file of this package adds: Magnum.
type service struct {
	name, path string
	serve      func(region *Region, c *call)
}

// New starts a cloud with an image, flavors, networks and a key; see Region.
func New(opts Options) (*Cloud, error) {
	if len(opts.Regions) == 0 {
		opts.Regions = []string{"RegionOne"}
	}
	if len(opts.Zones) == 0 {
		opts.Zones = []string{"nova"}
	}
	if opts.TokenTTL == 0 {
		opts.TokenTTL = time.Hour
	}
	if opts.MaxMicroversion == "" {
		opts.MaxMicroversion = "2.93"
	}
	if opts.PageLimit == 0 {
		opts.PageLimit = 1000
	}
	if opts.FailDelay == 0 {
		opts.FailDelay = opts.BuildDelay
	}
	c := &Cloud{opts: opts, started: time.Now(), regions: map[string]*Region{}, order: opts.Regions, services: map[string]service{},
		rng: mathrand.New(mathrand.NewPCG(opts.Seed, 1)), timers: map[*time.Timer]bool{}, told: make(chan func(), 65536), done: make(chan struct{})}
	c.identity = newIdentity(opts.TokenTTL)
	for n, name := range opts.Regions {
		if c.regions[name] != nil {
			return nil, fmt.Errorf("start openstack: region %s stands twice", name)
		}
		c.regions[name] = newRegion(c, name, n)
	}
	c.Region = c.regions[opts.Regions[0]]
	c.addMagnum()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start openstack: %w", err)
	}
	c.address = "http://" + l.Addr().String()
	c.http = &http.Server{Handler: http.HandlerFunc(c.serve), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = c.http.Serve(l) }()
	go func() {
		defer close(c.done)
		for tell := range c.told {
			tell()
		}
	}()
	return c, nil
}

// Close ends the cloud; nothing of it goes on.
func (c *Cloud) Close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	for t := range c.timers {
		t.Stop()
	}
	close(c.told)
	c.mu.Unlock()
	_ = c.http.Close()
	<-c.done
}

// Endpoint is where everything answers, "http://127.0.0.1:PORT".
func (c *Cloud) Endpoint() string { return c.address }

// AuthURL is Keystone's.
func (c *Cloud) AuthURL() string { return c.address + "/identity/v3" }

// RegionNamed returns a region, nil when there is none of that name.
func (c *Cloud) RegionNamed(name string) *Region { return c.regions[name] }

// addService adds an API to the catalog of every region. serve runs with the cloud
// locked.
func (c *Cloud) addService(typ, name, path string, serve func(*Region, *call)) {
	c.services[typ] = service{name, path, serve}
}

// after runs f with the cloud locked once d, varied by the seed, has passed.
// The caller holds c.mu.
func (c *Cloud) after(d time.Duration, f func()) {
	if c.closed {
		return
	}
	if c.opts.Jitter > 0 {
		d = time.Duration(float64(d) * (1 + c.opts.Jitter*(2*c.rng.Float64()-1)))
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, t)
		if !c.closed {
			f()
		}
	})
	c.timers[t] = true
}

// tell runs f outside of the lock, in order. The caller holds c.mu.
func (c *Cloud) tell(f func()) {
	if !c.closed {
		c.told <- f
	}
}

// newID is a UUID as OpenStack writes it.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// String lists what there is, for the log of a test that failed.
func (c *Cloud) String() string {
	var b strings.Builder
	for _, name := range c.order {
		r := c.regions[name]
		fmt.Fprintf(&b, "region %s\n", name)
		for _, s := range r.Servers() {
			fmt.Fprintf(&b, "  server %s %s %s %s %s %v\n", s.ID, s.Name, s.Status, s.TaskState, s.Flavor.Name, s.Metadata)
			if s.Fault != nil {
				fmt.Fprintf(&b, "    fault %d %s\n", s.Fault.Code, s.Fault.Message)
			}
		}
		for _, p := range r.Ports() {
			fmt.Fprintf(&b, "  port %s %q device %q %v\n", p.ID, p.Name, p.DeviceID, p.Addresses)
		}
	}
	c.mu.Lock()
	calls := slices.Clone(c.calls)
	c.mu.Unlock()
	for _, call := range calls[max(0, len(calls)-40):] {
		fmt.Fprintf(&b, "  %s\n", call)
	}
	return b.String()
}
