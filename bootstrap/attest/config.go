package attest

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
)

// Config is read from AUTOSCALER_BOOTSTRAP_ATTEST_* (envconfig, nested by bootstrap).
type Config struct {
	// Listen is the address of the listener, for example ":6444"; empty: there is none.
	Listen string `envconfig:"LISTEN" desc:"Address at which machines on AWS attest and get a token of their own, such as :6444; empty: none."`
	// CertFile and KeyFile are the listener's certificate, which the cluster's CA has
	// signed for ServerName, and its key. They are read anew when they change. DefaultFile
	// is made and renewed by install; other files are the operator's.
	CertFile string `envconfig:"CERT_FILE" default:"/etc/autoscaler-agent/attest.pem" desc:"Certificate of this listener; autoscaler-agent install makes and renews the default file."`
	KeyFile  string `envconfig:"KEY_FILE" default:"/etc/autoscaler-agent/attest.pem" desc:"Its key; the same file may hold both."`
	// Account is the AWS account of the workers.
	Account string `envconfig:"ACCOUNT" desc:"AWS account of the workers."`
	// Roles are the names of the workers' instance roles.
	Roles []string `envconfig:"ROLES" desc:"Names of the workers' instance roles, comma-separated."`
	// Region is the one whose STS is asked; empty: AUTOSCALER_AWS_REGION.
	Region string `envconfig:"REGION" desc:"Region whose STS is asked; empty: AUTOSCALER_AWS_REGION."`
	// Window is how long after its launch an instance may ask.
	Window time.Duration `envconfig:"WINDOW" default:"1h" desc:"How long after its launch an instance may attest."`
}

var (
	accountPattern = lazyregexp.New(`\A[0-9]{12}\z`)
	rolePattern    = lazyregexp.New(`\A[A-Za-z0-9+=,.@_-]{1,64}\z`)
	regionPattern  = lazyregexp.New(`\A[a-z]{2}(-[a-z]+)+-[0-9]{1,2}\z`)
)

// Validate names every variable that is wrong, and the remedy.
func (c Config) Validate() error {
	var errs []error
	bad := func(name, value, remedy string) {
		errs = append(errs, fmt.Errorf("AUTOSCALER_BOOTSTRAP_ATTEST_%s is %q: %s", name, value, remedy))
	}
	if c.Account != "" && !accountPattern.MatchString(c.Account) {
		bad("ACCOUNT", c.Account, "write the twelve digits of the workers' AWS account")
	}
	for _, r := range c.Roles {
		if !rolePattern.MatchString(r) {
			bad("ROLES", r, "write the role's name, not its ARN or path")
		}
	}
	if c.Listen == "" {
		return errors.Join(errs...)
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		bad("LISTEN", c.Listen, "write an address to listen on, for example :6444")
	}
	for _, f := range []struct{ name, value string }{{"CERT_FILE", c.CertFile}, {"KEY_FILE", c.KeyFile}} {
		if !filepath.IsAbs(f.value) {
			bad(f.name, f.value, "use an absolute path; docs/attested-join.md tells how the file is made")
		}
	}
	if c.Account == "" {
		bad("ACCOUNT", c.Account, "write the twelve digits of the workers' AWS account")
	}
	if len(c.Roles) == 0 {
		bad("ROLES", "", "name the instance role of the workers, for example worker; several with commas")
	}
	if !regionPattern.MatchString(c.Region) {
		bad("REGION", c.Region, "write the workers' region, for example eu-west-1, here or in AUTOSCALER_AWS_REGION")
	}
	if c.Window < time.Minute {
		bad("WINDOW", c.Window.String(), "use 1m or more, for example 1h")
	}
	return errors.Join(errs...)
}

// Host is the STS endpoint of the region.
func (c Config) Host() string {
	if strings.HasPrefix(c.Region, "cn-") {
		return "sts." + c.Region + ".amazonaws.com.cn"
	}
	return "sts." + c.Region + ".amazonaws.com"
}

// partition is the one that ARNs of the region begin with.
func (c Config) partition() string {
	switch {
	case strings.HasPrefix(c.Region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(c.Region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}
