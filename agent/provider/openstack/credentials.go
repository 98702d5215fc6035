package openstack

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"gopkg.in/gcfg.v1"
	"gopkg.in/gcfg.v1/types"
)

// access is everything that a login needs.
type access struct {
	auth     gophercloud.AuthOptions
	endpoint gophercloud.EndpointOpts
	tls      *tls.Config // nil: the system's
	source   string      // where the credentials came from, for people
}

// find reads the credentials: the cloud-config file where one is named, clouds.yaml
// where a cloud is named, the OS_* variables else.
func find(c Config, env func(string) string) (access, error) {
	var a access
	var err error
	cloud := first(c.Cloud, env("OS_CLOUD"))
	switch {
	case c.CloudConfig != "":
		a, err = fromCloudConfig(c.CloudConfig, cloud)
	case cloud != "":
		a, err = fromCloudsYAML(cloud, env("OS_CLIENT_CONFIG_FILE"))
	default:
		a, err = fromEnvironment(env)
	}
	if err != nil {
		return a, err
	}
	a.endpoint.Region = first(c.Region, a.endpoint.Region)
	a.auth.AllowReauth = true
	if a.auth.ApplicationCredentialID != "" || a.auth.ApplicationCredentialName != "" {
		a.auth.Password, a.auth.TokenID = "", "" // gophercloud would log in with these, without a project
	}
	return a, nil
}

func first(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

func fromCloudsYAML(name, file string) (access, error) {
	opts := []clouds.ParseOption{clouds.WithCloudName(name)}
	source := "clouds.yaml"
	if file != "" {
		opts = append(opts, clouds.WithLocations(file))
		source = file
	}
	auth, endpoint, tlsConfig, err := clouds.Parse(opts...)
	if err != nil {
		return access{}, fmt.Errorf("cloud %q: %w", name, err)
	}
	if auth.IdentityEndpoint == "" {
		return access{}, fmt.Errorf("cloud %q: %s gives no auth_url", name, source)
	}
	return access{auth: auth, endpoint: endpoint, tls: tlsConfig, source: fmt.Sprintf("cloud %q of %s", name, source)}, nil
}

// settings are credentials by the keys of the [Global] section of the cloud-config file that the Kubernetes cloud
// provider defines, and by the OS_* variables of python-openstackclient that mean the same: the first that is set counts.
type settings struct {
	AuthURL                     string `gcfg:"auth-url" env:"OS_AUTH_URL"`
	Username                    string `gcfg:"username" env:"OS_USERNAME"`
	UserID                      string `gcfg:"user-id" env:"OS_USER_ID,OS_USERID"`
	Password                    string `gcfg:"password" env:"OS_PASSWORD"`
	ProjectID                   string `gcfg:"tenant-id" env:"OS_PROJECT_ID,OS_TENANT_ID"`
	ProjectName                 string `gcfg:"tenant-name" env:"OS_PROJECT_NAME,OS_TENANT_NAME"`
	DomainID                    string `gcfg:"domain-id" env:"OS_DOMAIN_ID"`
	DomainName                  string `gcfg:"domain-name" env:"OS_DOMAIN_NAME"`
	UserDomainID                string `gcfg:"user-domain-id" env:"OS_USER_DOMAIN_ID"`
	UserDomainName              string `gcfg:"user-domain-name" env:"OS_USER_DOMAIN_NAME"`
	ProjectDomainID             string `gcfg:"tenant-domain-id" env:"OS_PROJECT_DOMAIN_ID"`
	ProjectDomainName           string `gcfg:"tenant-domain-name" env:"OS_PROJECT_DOMAIN_NAME"`
	TrustID                     string `gcfg:"trust-id" env:"OS_TRUST_ID"`
	ApplicationCredentialID     string `gcfg:"application-credential-id" env:"OS_APPLICATION_CREDENTIAL_ID"`
	ApplicationCredentialName   string `gcfg:"application-credential-name" env:"OS_APPLICATION_CREDENTIAL_NAME"`
	ApplicationCredentialSecret string `gcfg:"application-credential-secret" env:"OS_APPLICATION_CREDENTIAL_SECRET"`
	Region                      string `gcfg:"region" env:"OS_REGION_NAME"`
	EndpointType                string `gcfg:"os-endpoint-type" env:"OS_INTERFACE,OS_ENDPOINT_TYPE"`
	CAFile                      string `gcfg:"ca-file" env:"OS_CACERT"`
	Insecure                    bool   `gcfg:"tls-insecure" env:"OS_INSECURE"`
	// These send on to a clouds.yaml.
	UseClouds  bool   `gcfg:"use-clouds"`
	CloudsFile string `gcfg:"clouds-file"`
	Cloud      string `gcfg:"cloud"`
}

// variables are the OS_* variables of a field of settings.
func variables(f reflect.StructField) []string {
	return strings.FieldsFunc(f.Tag.Get("env"), func(r rune) bool { return r == ',' })
}

// Variables lists the OS_* variables that are read, in the order in which they are
// documented.
func Variables() []string {
	out := []string{"OS_CLOUD", "OS_CLIENT_CONFIG_FILE"}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[settings]()) {
		out = append(out, variables(f)...)
	}
	return out
}

func fromEnvironment(env func(string) string) (access, error) {
	var s settings
	for _, f := range reflect.VisibleFields(reflect.TypeFor[settings]()) {
		for _, name := range slices.Backward(variables(f)) {
			value, field := env(name), reflect.ValueOf(&s).Elem().FieldByIndex(f.Index)
			switch {
			case value == "":
			case f.Type.Kind() == reflect.Bool:
				on, err := types.ParseBool(value)
				if err != nil {
					return access{}, fmt.Errorf("%s: %q is neither true nor false", name, value)
				}
				field.SetBool(on)
			default:
				field.SetString(value)
			}
		}
	}
	a, err := s.access()
	a.source = "the OS_* variables"
	return a, err
}

// fromCloudConfig reads the [Global] section of a file as the Kubernetes cloud provider does: keys and sections that
// are not of settings are other programs'. No error of gcfg repeats more than one character of a text.
func fromCloudConfig(path, cloud string) (access, error) {
	var file struct{ Global settings }
	if err := gcfg.FatalOnly(gcfg.ReadFileInto(&file, path)); err != nil {
		return access{}, fmt.Errorf("%s: %w", path, err)
	}
	var a access
	var err error
	switch {
	case file.Global == settings{}:
		err = errors.New("there is no [Global] section, or it is empty")
	case file.Global.UseClouds:
		a, err = fromCloudsYAML(first(file.Global.Cloud, cloud), file.Global.CloudsFile)
	default:
		a, err = file.Global.access()
		a.source = path
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return a, err
}

func (v settings) access() (access, error) {
	if v.AuthURL == "" {
		return access{}, errors.New("there is no auth URL")
	}
	endpoints, err := availability(v.EndpointType)
	if err != nil {
		return access{}, err
	}
	a := access{
		auth: gophercloud.AuthOptions{
			IdentityEndpoint: v.AuthURL, UserID: v.UserID, Username: v.Username, Password: v.Password,
			ApplicationCredentialID: v.ApplicationCredentialID, ApplicationCredentialName: v.ApplicationCredentialName,
			ApplicationCredentialSecret: v.ApplicationCredentialSecret,
		},
		endpoint: gophercloud.EndpointOpts{Region: v.Region, Availability: endpoints},
	}
	// A user given by ID has no domain, and an application credential has its project.
	if v.UserID == "" && v.ApplicationCredentialID == "" {
		a.auth.DomainID = first(v.UserDomainID, v.DomainID)
		if a.auth.DomainID == "" {
			a.auth.DomainName = first(v.UserDomainName, v.DomainName)
		}
	}
	switch {
	case v.ApplicationCredentialID != "" || v.ApplicationCredentialName != "":
	case v.TrustID != "":
		a.auth.Scope = &gophercloud.AuthScope{TrustID: v.TrustID}
	case v.ProjectID != "":
		a.auth.Scope = &gophercloud.AuthScope{ProjectID: v.ProjectID}
	case v.ProjectName != "":
		a.auth.Scope = &gophercloud.AuthScope{ProjectName: v.ProjectName, DomainID: first(v.ProjectDomainID, v.UserDomainID, v.DomainID)}
		if a.auth.Scope.DomainID == "" {
			a.auth.Scope.DomainName = first(v.ProjectDomainName, v.UserDomainName, v.DomainName)
		}
	}
	if err := complete(a.auth); err != nil {
		return a, err
	}
	a.tls, err = trust(v.CAFile, v.Insecure)
	return a, err
}

// complete names what a login of this kind lacks.
func complete(o gophercloud.AuthOptions) error {
	switch {
	case o.ApplicationCredentialID != "" || o.ApplicationCredentialName != "":
		if o.ApplicationCredentialSecret == "" {
			return errors.New("the application credential has no secret")
		}
		if o.ApplicationCredentialID == "" && o.UserID == "" && o.Username == "" {
			return errors.New("an application credential given by name needs the user that owns it; give its ID instead")
		}
	case o.UserID == "" && o.Username == "":
		return errors.New("there is neither an application credential nor a user")
	case o.Password == "":
		return errors.New("the user has no password")
	case o.Scope == nil:
		return errors.New("no project is set, so a token would have no rights")
	}
	return nil
}

func availability(s string) (gophercloud.Availability, error) {
	switch strings.TrimSuffix(s, "URL") {
	case "internal":
		return gophercloud.AvailabilityInternal, nil
	case "admin":
		return gophercloud.AvailabilityAdmin, nil
	case "", "public":
		return gophercloud.AvailabilityPublic, nil
	}
	return "", fmt.Errorf("os-endpoint-type (OS_INTERFACE): %q is none of public, internal and admin", s)
}

// trust is the TLS configuration for a CA file, nil for the system's own.
func trust(file string, skip bool) (*tls.Config, error) {
	if file == "" && !skip {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: skip} // #nosec G402 -- verify: false of clouds.yaml, or OS_INSECURE
	if file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("CA file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA file %s: there is no certificate in it", file)
		}
	}
	return c, nil
}
