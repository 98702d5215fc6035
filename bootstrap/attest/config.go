package attest

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config is read from AUTOSCALER_BOOTSTRAP_ATTEST_* (envconfig, nested by bootstrap).
type Config struct {
	// Listen is the address of the listener, for example ":6444"; empty: there is none.
	Listen string `envconfig:"LISTEN" form:"listen" desc:"Address at which machines on AWS attest and get a token of their own, such as :6444; empty: none."`
	// CertFile and KeyFile are the listener's certificate, which the cluster's CA has
	// signed for ServerName, and its key. They are read anew when they change. DefaultFile
	// is made and renewed by install; other files are the operator's.
	CertFile string `envconfig:"CERT_FILE" default:"/etc/autoscaler-agent/attest.pem" form:"file" desc:"Certificate of this listener; autoscaler-agent install makes and renews the default file."`
	KeyFile  string `envconfig:"KEY_FILE" default:"/etc/autoscaler-agent/attest.pem" form:"file" desc:"Its key; the same file may hold both."`
	// Account is the AWS account of the workers.
	Account string `envconfig:"ACCOUNT" form:"account" desc:"AWS account of the workers."`
	// Roles are the names of the workers' instance roles.
	Roles []string `envconfig:"ROLES" form:"role" desc:"Names of the workers' instance roles, comma-separated."`
	// Region is the one whose STS is asked; empty: AUTOSCALER_AWS_REGION.
	Region string `envconfig:"REGION" form:"region" desc:"Region whose STS is asked; empty: AUTOSCALER_AWS_REGION."`
	// Window is how long after its launch an instance may ask.
	Window time.Duration `envconfig:"WINDOW" default:"1h" range:"1m..168h" desc:"How long after its launch an instance may attest."`
}

// Validate names what a listener needs and has not, and the remedy.
func (c Config) Validate() error {
	if c.Listen == "" {
		return nil
	}
	var errs []error
	for _, need := range []struct{ name, value, remedy string }{
		{"ACCOUNT", c.Account, "write the twelve digits of the workers' AWS account"},
		{"ROLES", strings.Join(c.Roles, ","), "name the instance role of the workers, for example worker; several with commas"},
		{"REGION", c.Region, "write the workers' region, for example eu-west-1, here or in AUTOSCALER_AWS_REGION"},
	} {
		if need.value == "" {
			errs = append(errs, fmt.Errorf("AUTOSCALER_BOOTSTRAP_ATTEST_%s is %q: %s", need.name, need.value, need.remedy))
		}
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
