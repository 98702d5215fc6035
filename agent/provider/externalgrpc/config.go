package externalgrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Config has the address of the plug-in and the certificates of both sides. Under the
// product's prefix its variables are AUTOSCALER_EXTERNALGRPC_ADDRESS and so on.
type Config struct {
	// Address of the plug-in: host:port as Cluster Autoscaler has it (host%zone:port,
	// [host]:port), or unix:/path.
	Address string `form:"plugin" desc:"Address of the plug-in: host:port or unix:/path."`
	// CertFile and KeyFile are the agent's certificate and key, in PEM form.
	CertFile string `split_words:"true" form:"file" desc:"The agent's certificate for the plug-in."`
	KeyFile  string `split_words:"true" form:"file" desc:"Its key."`
	// CAFile has the authorities of the plug-in's certificate. Empty: the authorities
	// that this machine trusts.
	CAFile string `split_words:"true" form:"file" desc:"Authorities of the plug-in's certificate; empty: those of this machine."`
	// ServerName is the name in the plug-in's certificate. Empty: the address's host.
	ServerName string `split_words:"true" form:"host" desc:"Name in the plug-in's certificate; empty: the host of the address."`
	// Insecure allows a connection without TLS, to this machine only.
	Insecure bool `desc:"Allow a connection without TLS, to this machine only."`
	// CloudConfig is the path of a file in the form of Cluster Autoscaler's
	// --cloud-config for this provider: address, key, cert, cacert, grpc_timeout. The
	// variables above override it.
	CloudConfig string `split_words:"true" form:"file" desc:"Path of Cluster Autoscaler's --cloud-config for externalgrpc; the variables above override it."`
	// Timeout limits each single call. 0: the timeout of CloudConfig, else 10 seconds.
	Timeout time.Duration `range:"100ms..10m" zero:"that of the file, else 10s" desc:"Longest time of one call to the plug-in; 0: that of the file, else 10s."`
}

// defaultTimeout is twice Cluster Autoscaler's: DeleteNodes and IncreaseSize may wait
// until the new size can be read.
const defaultTimeout = 10 * time.Second

// prefix of the variables in messages.
const prefix = "AUTOSCALER_EXTERNALGRPC_"

// settings is the completed configuration.
type settings struct {
	network, address string // of net.Dial
	authority        string // of the requests
	serverName       string
	cert, key, ca    string
	insecure         bool
	timeout          time.Duration
}

// cloudConfig is Cluster Autoscaler's file.
type cloudConfig struct {
	Address     string `json:"address"`
	Key         string `json:"key"`
	Cert        string `json:"cert"`
	CACert      string `json:"cacert"`
	GRPCTimeout string `json:"grpc_timeout"`
}

// Validate returns every mistake of the configuration, joined, each with the name of its
// variable and what to write instead.
func (c Config) Validate() error {
	_, err := c.settings()
	return err
}

func (c Config) settings() (settings, error) {
	var errs []error
	bad := func(variable, value, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s%s: %q: %s", prefix, variable, value, fmt.Sprintf(format, args...)))
	}
	file, timeout, err := readCloudConfig(c.CloudConfig)
	if err != nil {
		bad("CLOUD_CONFIG", c.CloudConfig, "%s", err)
	}
	s := settings{
		address: or(c.Address, file.Address), serverName: c.ServerName, insecure: c.Insecure,
		cert: or(c.CertFile, file.Cert), key: or(c.KeyFile, file.Key), ca: or(c.CAFile, file.CACert),
	}
	switch {
	case c.Timeout < 0:
		bad("TIMEOUT", c.Timeout.String(), "write a duration above zero, for example 10s")
	case c.Timeout > 0:
		s.timeout = c.Timeout
	case timeout > 0:
		s.timeout = timeout
	default:
		s.timeout = defaultTimeout
	}
	local := s.dial(bad)
	switch {
	case s.insecure && s.cert+s.key+s.ca != "":
		bad("INSECURE", "true", "certificates are configured as well: keep one of the two")
	case s.insecure && !local:
		bad("INSECURE", "true", "the plug-in at %s is not on this machine, and without TLS a third party could delete nodes: configure CERT_FILE, KEY_FILE and CA_FILE", s.address)
	case !s.insecure && s.network == "unix":
		bad("ADDRESS", s.address, "a connection over a unix socket is not encrypted: set %sINSECURE=true", prefix)
	case (s.cert == "") != (s.key == ""):
		bad("CERT_FILE", s.cert, "a certificate and its key go together: set CERT_FILE and KEY_FILE, or neither")
	case !s.insecure && s.cert == "":
		bad("CERT_FILE", "", "the plug-in needs a certificate to identify the agent: set CERT_FILE, KEY_FILE and CA_FILE, or %sINSECURE=true for a plug-in on this machine", prefix)
	}
	return s, errors.Join(errs...)
}

// dial sets the arguments of net.Dial, and tells whether the plug-in is on this machine.
func (s *settings) dial(bad func(variable, value, format string, args ...any)) (local bool) {
	if path, ok := strings.CutPrefix(s.address, "unix:"); ok {
		s.network, s.address, s.authority = "unix", "/"+strings.TrimLeft(path, "/"), "localhost"
		return true
	}
	s.network = "tcp"
	if s.address == "" {
		bad("ADDRESS", "", "write the address of the plug-in: host:port, or unix:/path")
		return true
	}
	s.address = strings.TrimPrefix(strings.TrimPrefix(s.address, "dns:///"), "passthrough:///")
	host, port, err := net.SplitHostPort(s.address)
	if err != nil || host == "" || port == "" {
		bad("ADDRESS", s.address, "write host:port, [address]:port or unix:/path")
		return true
	}
	s.serverName = or(s.serverName, host)
	bare, _, _ := strings.Cut(host, "%")
	s.authority = net.JoinHostPort(bare, port)
	ip := net.ParseIP(bare)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// readCloudConfig reads Cluster Autoscaler's file; "": there is none.
func readCloudConfig(path string) (c cloudConfig, timeout time.Duration, err error) {
	if path == "" {
		return c, 0, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return c, 0, err
	}
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return c, 0, fmt.Errorf("write address, key, cert, cacert and grpc_timeout: %w", err)
	}
	if c.GRPCTimeout != "" {
		if timeout, err = time.ParseDuration(c.GRPCTimeout); err != nil || timeout <= 0 {
			return c, 0, fmt.Errorf("grpc_timeout %q: write a duration above zero, for example 5s", c.GRPCTimeout)
		}
	}
	return c, timeout, nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// section is the section externalgrpc of groups.yaml.
type section struct {
	Instances []listed `json:"instances"`
}

// listed is one machine of an operator's inventory, for plug-ins that report no names and
// addresses: the form of the section machines, and what only a cloud tells.
type listed struct {
	Instance  string    `json:"instance"`  // its provider ID
	Node      string    `json:"node"`      // the name of its Node
	Names     []string  `json:"names"`     // its other DNS names
	Addresses []string  `json:"addresses"` // its IP addresses
	Created   time.Time `json:"created"`
	Type      string    `json:"type"`
	Zone      string    `json:"zone"`
}

// Section reads the section externalgrpc of groups.yaml. The error joins every mistake
// with its place below the section.
func Section(text json.RawMessage) error {
	_, err := readSection(text)
	return err
}

// readSection returns the operator's inventory, by provider ID.
func readSection(text json.RawMessage) (map[string]facts, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var s section
	if err := yaml.UnmarshalStrict(text, &s); err != nil {
		return nil, sectionError(err)
	}
	var errs []error
	out := make(map[string]facts, len(s.Instances))
	for n, i := range s.Instances {
		bad := func(field, format string, args ...any) {
			errs = append(errs, fmt.Errorf("instances[%d].%s: %s", n, field, fmt.Sprintf(format, args...)))
		}
		_, twice := out[i.Instance]
		switch {
		case i.Instance == "":
			bad("instance", "write the provider ID of the machine, as its Node has it")
		case twice:
			bad("instance", "%q is listed twice", i.Instance)
		}
		if i.Node == "" || i.Node != strings.ToLower(i.Node) {
			bad("node", "%q: write the name of the machine's Node, in lower case", i.Node)
		}
		for _, a := range i.Addresses {
			if net.ParseIP(a) == nil {
				bad("addresses", "%q is no IP address", a)
			}
		}
		out[i.Instance] = facts{nodeNames: []string{i.Node}, names: i.Names, addresses: i.Addresses, created: i.Created, typ: i.Type, zone: i.Zone}
	}
	return out, errors.Join(errs...)
}

// sectionError says in the words of the file what the decoder says in Go's. The names id and
// nodeName are those of an older form of this section.
func sectionError(err error) error {
	const form = "write instances, a list of {instance, node, names, addresses, created, type, zone}"
	_, field, unknown := strings.Cut(err.Error(), "unknown field ")
	switch {
	case unknown && strings.HasPrefix(field, `"id"`):
		return errors.New("there is no field id: write instance, as in the section machines")
	case unknown && strings.HasPrefix(field, `"nodeName"`):
		return errors.New("there is no field nodeName: write node, as in the section machines")
	case unknown:
		return fmt.Errorf("there is no field %s: %s", field, form)
	}
	return errors.New(form)
}
