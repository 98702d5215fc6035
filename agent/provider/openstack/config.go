package openstack

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config defines how OpenStack is reached. Under the product's prefix its variables are
// AUTOSCALER_OPENSTACK_CLOUD and so on. What they leave open comes from the variables
// that every OpenStack client reads (OS_CLOUD, OS_AUTH_URL, ...).
type Config struct {
	// Cloud is a name in clouds.yaml, which is looked for where every client looks: in
	// OS_CLIENT_CONFIG_FILE, or ./, ~/.config/openstack/ and /etc/openstack/. Empty:
	// OS_CLOUD, and where that is empty too, the OS_* variables.
	Cloud string `split_words:"true" form:"text" desc:"Name in clouds.yaml; empty: OS_CLOUD, then the OS_* variables."`
	// CloudConfig is the path of a file with a [Global] section as the Kubernetes cloud
	// provider reads it, for example the /etc/kubernetes/cloud-config that Magnum writes
	// on its master nodes. It comes before Cloud and OS_*.
	CloudConfig string `split_words:"true" form:"file" desc:"Path of a cloud-config file with a section [Global]; it comes before clouds.yaml and OS_*."`
	// Region of the services. Empty: the region of clouds.yaml or the cloud-config file,
	// or OS_REGION_NAME; where the catalog has one region only it need not be named.
	Region string `split_words:"true" form:"word" desc:"Region; empty: that of the credentials."`
	// Timeout limits each single request.
	Timeout time.Duration `split_words:"true" default:"20s" range:"100ms..10m" desc:"Longest time of one call to OpenStack."`
}

// Validate returns every mistake of the configuration, joined, each with the name of
// its variable. Files are not read.
func (c Config) Validate() error {
	var errs []error
	if c.Cloud != "" && c.CloudConfig != "" {
		errs = append(errs, fmt.Errorf("AUTOSCALER_OPENSTACK_CLOUD: %q: AUTOSCALER_OPENSTACK_CLOUD_CONFIG is set as well; keep one of them", c.Cloud))
	}
	if strings.ContainsAny(c.Region, " \t,/") {
		errs = append(errs, fmt.Errorf("AUTOSCALER_OPENSTACK_REGION: %q: this is no region; write one as `openstack region list` shows it", c.Region))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("AUTOSCALER_OPENSTACK_TIMEOUT: %q: write a duration above zero, for example 20s", c.Timeout))
	}
	return errors.Join(errs...)
}
