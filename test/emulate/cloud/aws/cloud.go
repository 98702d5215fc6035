package aws

import (
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Options sets up a Cloud. The zero value is a fast AWS in us-east-1 with
// three zones. A negative delay means none.
type Options struct {
	Region    string   // default us-east-1
	Zones     []string // letters after the region, default a, b, c
	AccountID string   // default 123456789012
	Seed      uint64   // of everything random; 0 picks one, Seed tells which
	Network   int      // the VPC is 10.Network.0.0/16; clouds of one cluster need different ones

	LaunchDelay          time.Duration // from a changed target to a Pending instance, default 200ms
	BootDelay            time.Duration // from pending to running, default 1s
	ServiceDelay         time.Duration // from running to InService, default none
	TerminateDelay       time.Duration // from shutting-down to terminated, default 1s
	TerminatedVisibleFor time.Duration // how long DescribeInstances shows it then, default 1h
	LeaveDelay           time.Duration // how long a group lists it as Terminated then, default not at all
	HealthCheckDelay     time.Duration // until a group notices a dead instance, default 1s
	RetryDelay           time.Duration // until a group tries a failed launch again, default 3s
	Jitter               float64       // share by which each delay varies, 0 to 1

	// Latency is how long every answer takes at least, default 3ms. It must not
	// be nothing: smithy-go closes the request's body once it has the head of
	// an answer, and an answer that overtakes net/http's write loop makes the
	// SDK kill its own connection (aws-sdk-go-v2 issue 2737). No network is
	// that fast.
	Latency time.Duration

	// Buckets has every action throttled by a token bucket of its own, as AWS does it.
	Buckets  bool
	MaxPage  int  // caps every page of every list, 0 keeps AWS's own limits
	ReuseIPs bool // give a new instance the lowest free address, as a small subnet would

	// Unlistened has no port: requests come by ServeHTTP, and Endpoint is http://aws.invalid.
	Unlistened bool

	// OnLaunch is told of each instance that reached running, in a goroutine
	// of its own.
	OnLaunch func(Instance)
	// OnState is told of each change of an EC2 state, one at a time and in
	// order; the old state of a new instance is "". It may call the Cloud.
	OnState func(i Instance, old, new string)
	// OnReboot is told of Reboot, which EC2 shows in no state. In order with
	// OnState.
	OnReboot func(Instance)
	// OnExchange sees each answer as it went out, before it goes out.
	OnExchange func(Exchange)
	// Log gets a line per write call, launch and termination. nil is silent.
	Log io.Writer
}

// Exchange is one answer on the wire, for whoever checks answers.
type Exchange struct {
	Service, Action string
	Status          int
	ContentType     string
	Body            []byte
	RequestID       string
}

// Cloud is one running AWS. All methods may be called from any goroutine.
type Cloud struct {
	opts     Options
	listener net.Listener
	server   *http.Server

	mu      sync.Mutex
	rng     *rand.Rand
	world   *world
	account *account
	types   map[string]InstanceType
	lag     map[string]time.Duration
	history []past
	hidden  map[string]time.Time // instances, and until when; see Hide
	alarms  alarms
	// spotPrices are sorted by type and zone; see SetSpotPrice.
	spotPrices []spotPrice
	listPrices map[string]float64 // by type
	alarmSeq   int
	keys       map[string]*credentials // by access key ID
	faults     []*armed
	calls      []Call
	counts     map[string]int
	buckets    map[string]*bucket // by action
	throttled  map[string]int     // by action
	pools      map[pool]int       // what is left where capacity is limited
	badImage   map[string]bool
	quota      int // vCPUs, 0 is unlimited
	nextIP     map[string]int
	metadata   map[string]*metadataServer // by instance ID
	console    map[string]string          // by instance ID
	tokens     map[string]any             // answers by action and client token
	notices    []func()
	noticed    *sync.Cond
	closed     bool

	rootKey    string
	rearm      chan struct{}
	done       chan struct{}
	background sync.WaitGroup
}

// New starts a cloud on a free port of 127.0.0.1. Close stops it.
func New(opts Options) (*Cloud, error) {
	opts = opts.withDefaults()
	var listener net.Listener
	if !opts.Unlistened {
		var err error
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, fmt.Errorf("start aws: %w", err)
		}
	}
	c := &Cloud{
		opts:      opts,
		listener:  listener,
		rng:       rand.New(rand.NewPCG(opts.Seed, opts.Seed>>32|1)),
		world:     newWorld(),
		account:   newAccount(),
		types:     map[string]InstanceType{},
		lag:       map[string]time.Duration{},
		keys:      map[string]*credentials{},
		counts:    map[string]int{},
		buckets:   map[string]*bucket{},
		throttled: map[string]int{},
		pools:     map[pool]int{},
		badImage:  map[string]bool{},
		nextIP:    map[string]int{},
		metadata:  map[string]*metadataServer{},
		console:   map[string]string{},
		tokens:    map[string]any{},
		rearm:     make(chan struct{}, 1),
		done:      make(chan struct{}),
	}
	c.noticed = sync.NewCond(&c.mu)
	for _, t := range builtinTypes {
		c.types[t.Name] = t
	}
	c.rootKey = c.mint("AKIA", "", 0).AccessKeyID
	c.server = &http.Server{
		Handler:           http.HandlerFunc(c.serve),
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: time.Minute,
	}
	c.background.Add(2)
	go c.runClock()
	go c.runNotices()
	if listener == nil {
		c.background.Done()
		return c, nil
	}
	go func() {
		defer c.background.Done()
		c.server.Serve(listener)
	}()
	return c, nil
}

func (o Options) withDefaults() Options {
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if len(o.Zones) == 0 {
		o.Zones = []string{"a", "b", "c"}
	}
	o.Zones = slices.Clone(o.Zones)
	for i, z := range o.Zones {
		if len(z) == 1 {
			o.Zones[i] = o.Region + z
		}
	}
	if o.AccountID == "" {
		o.AccountID = "123456789012"
	}
	for o.Seed == 0 {
		o.Seed = rand.Uint64() >> 1
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
		*d = max(*d, 0)
	}
	def(&o.Latency, 3*time.Millisecond)
	def(&o.ServiceDelay, 0)
	def(&o.LeaveDelay, 0)
	def(&o.LaunchDelay, 200*time.Millisecond)
	def(&o.BootDelay, time.Second)
	def(&o.TerminateDelay, time.Second)
	def(&o.TerminatedVisibleFor, time.Hour)
	def(&o.HealthCheckDelay, time.Second)
	def(&o.RetryDelay, 3*time.Second)
	return o
}

// Close stops the server, the clock and every metadata listener, and waits
// for server and clock. A callback under way is not waited for, so it may call
// Close.
func (c *Cloud) Close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	close(c.done)
	for _, m := range c.metadata {
		m.close()
	}
	c.noticed.Broadcast()
	c.mu.Unlock()
	c.server.Close()
	c.background.Wait()
}

// Endpoint is the AWS_ENDPOINT_URL of every service.
func (c *Cloud) Endpoint() string {
	if c.listener == nil {
		return "http://aws.invalid"
	}
	return "http://" + c.listener.Addr().String()
}

// ServeHTTP implements http.Handler.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.serve(w, r) }

// Seed is the seed in use. Print it when a test fails.
func (c *Cloud) Seed() uint64 { return c.opts.Seed }

// Region is the region that the cloud serves.
func (c *Cloud) Region() string { return c.opts.Region }

// Zones are the full names of the region's zones.
func (c *Cloud) Zones() []string { return slices.Clone(c.opts.Zones) }

// Env is what a process needs in its environment to use this cloud with the
// SDK or the aws command, and nothing else that they might find on the way.
func (c *Cloud) Env() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.keys[c.rootKey]
	return []string{
		"AWS_ENDPOINT_URL=" + c.Endpoint(),
		"AWS_REGION=" + c.opts.Region,
		"AWS_DEFAULT_REGION=" + c.opts.Region,
		"AWS_ACCESS_KEY_ID=" + k.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY=" + k.SecretAccessKey,
		"AWS_SESSION_TOKEN=",
		"AWS_CONFIG_FILE=/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE=/dev/null",
		"AWS_EC2_METADATA_DISABLED=true",
	}
}

// EnvOn is Env for a process that runs on an instance: it has no keys of its
// own and gets those of the instance profile from the metadata service.
func (c *Cloud) EnvOn(instanceID string) ([]string, error) {
	endpoint, err := c.IMDS(instanceID)
	if err != nil {
		return nil, err
	}
	return []string{
		"AWS_ENDPOINT_URL=" + c.Endpoint(),
		"AWS_REGION=" + c.opts.Region,
		"AWS_DEFAULT_REGION=" + c.opts.Region,
		"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN=",
		"AWS_CONFIG_FILE=/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE=/dev/null",
		"AWS_EC2_METADATA_DISABLED=false",
		"AWS_EC2_METADATA_SERVICE_ENDPOINT=" + endpoint,
	}, nil
}

// notify queues a callback. The caller holds c.mu.
func (c *Cloud) notify(f func()) {
	c.notices = append(c.notices, f)
	c.noticed.Signal()
}

// runNotices makes the callbacks one by one, so that whoever listens sees
// states in their order and may call the Cloud from a callback.
func (c *Cloud) runNotices() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for len(c.notices) == 0 && !c.closed {
			c.noticed.Wait()
		}
		if c.closed {
			return
		}
		f := c.notices[0]
		c.notices = c.notices[1:]
		c.mu.Unlock()
		f()
		c.mu.Lock()
	}
}

func (c *Cloud) logf(format string, args ...any) {
	if c.opts.Log != nil {
		fmt.Fprintf(c.opts.Log, "aws: "+format+"\n", args...)
	}
}

// hex returns n random lower-case hex digits. The caller holds c.mu.
func (c *Cloud) hex(n int) string {
	const digits = "0123456789abcdef"
	b := make([]byte, n)
	for i := range b {
		b[i] = digits[c.rng.IntN(16)]
	}
	return string(b)
}

// uuid is the form of activity and request IDs.
func (c *Cloud) uuid() string {
	return c.hex(8) + "-" + c.hex(4) + "-4" + c.hex(3) + "-a" + c.hex(3) + "-" + c.hex(12)
}
