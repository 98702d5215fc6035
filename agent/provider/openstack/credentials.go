package openstack

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
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
		a, err = fromValues(fromEnvironment(env))
		a.source = "the OS_* variables"
	}
	if err != nil {
		return a, err
	}
	a.endpoint.Region = first(c.Region, a.endpoint.Region)
	a.auth.AllowReauth = true
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

// values are credentials by the names of the cloud-config file.
type values map[string]string

// variables are the OS_* variables of python-openstackclient by the key of the
// cloud-config file that means the same; the first that is set counts.
var variables = []struct {
	key   string
	names []string
}{
	{"auth-url", []string{"OS_AUTH_URL"}},
	{"username", []string{"OS_USERNAME"}},
	{"user-id", []string{"OS_USER_ID", "OS_USERID"}},
	{"password", []string{"OS_PASSWORD"}},
	{"tenant-id", []string{"OS_PROJECT_ID", "OS_TENANT_ID"}},
	{"tenant-name", []string{"OS_PROJECT_NAME", "OS_TENANT_NAME"}},
	{"domain-id", []string{"OS_DOMAIN_ID"}},
	{"domain-name", []string{"OS_DOMAIN_NAME"}},
	{"user-domain-id", []string{"OS_USER_DOMAIN_ID"}},
	{"user-domain-name", []string{"OS_USER_DOMAIN_NAME"}},
	{"tenant-domain-id", []string{"OS_PROJECT_DOMAIN_ID"}},
	{"tenant-domain-name", []string{"OS_PROJECT_DOMAIN_NAME"}},
	{"trust-id", []string{"OS_TRUST_ID"}},
	{"application-credential-id", []string{"OS_APPLICATION_CREDENTIAL_ID"}},
	{"application-credential-name", []string{"OS_APPLICATION_CREDENTIAL_NAME"}},
	{"application-credential-secret", []string{"OS_APPLICATION_CREDENTIAL_SECRET"}},
	{"region", []string{"OS_REGION_NAME"}},
	{"os-endpoint-type", []string{"OS_INTERFACE", "OS_ENDPOINT_TYPE"}},
	{"ca-file", []string{"OS_CACERT"}},
	{"tls-insecure", []string{"OS_INSECURE"}},
}

// Variables lists the OS_* variables that are read, in the order in which they are
// documented.
func Variables() []string {
	out := []string{"OS_CLOUD", "OS_CLIENT_CONFIG_FILE"}
	for _, v := range variables {
		out = append(out, v.names...)
	}
	return out
}

func fromEnvironment(env func(string) string) values {
	v := values{}
	for _, known := range variables {
		for _, name := range known.names {
			if value := env(name); value != "" && v[known.key] == "" {
				v[known.key] = value
			}
		}
	}
	return v
}

// fromCloudConfig reads the [Global] section of a file in the form that the Kubernetes
// cloud provider defines. "use-clouds" sends on to a clouds.yaml.
func fromCloudConfig(path, cloud string) (access, error) {
	v, err := readCloudConfig(path)
	if err != nil {
		return access{}, err
	}
	if use, _ := strconv.ParseBool(v["use-clouds"]); use {
		a, err := fromCloudsYAML(first(v["cloud"], cloud), v["clouds-file"])
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return a, err
	}
	a, err := fromValues(v)
	a.source = path
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return a, err
}

func readCloudConfig(path string) (values, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	v, section, line := values{}, "", 0
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		line++
		text := strings.TrimSpace(scan.Text())
		switch {
		case text == "" || text[0] == '#' || text[0] == ';':
		case text[0] == '[':
			section = strings.ToLower(strings.Trim(text, "[] \t"))
		case section == "global":
			key, value, ok := strings.Cut(text, "=")
			if !ok {
				return nil, fmt.Errorf("%s line %d: write key=value", path, line) // the line may hold a secret
			}
			v[strings.ToLower(strings.TrimSpace(key))] = unquote(strings.TrimSpace(value))
		}
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(v) == 0 {
		return nil, fmt.Errorf("%s: there is no [Global] section, or it is empty", path)
	}
	return v, nil
}

// unquote takes a value out of the double quotes that gcfg allows.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(s[1 : len(s)-1])
}

func fromValues(v values) (access, error) {
	if v["auth-url"] == "" {
		return access{}, errors.New("there is no auth URL")
	}
	a := access{
		auth: gophercloud.AuthOptions{
			IdentityEndpoint: v["auth-url"],
			UserID:           v["user-id"], Username: v["username"], Password: v["password"],
			ApplicationCredentialID: v["application-credential-id"], ApplicationCredentialName: v["application-credential-name"],
			ApplicationCredentialSecret: v["application-credential-secret"],
		},
		endpoint: gophercloud.EndpointOpts{Region: v["region"], Availability: availability(v["os-endpoint-type"])},
	}
	// A user given by ID has no domain, and an application credential has its project.
	if a.auth.UserID == "" && a.auth.ApplicationCredentialID == "" {
		a.auth.DomainID = first(v["user-domain-id"], v["domain-id"])
		if a.auth.DomainID == "" {
			a.auth.DomainName = first(v["user-domain-name"], v["domain-name"])
		}
	}
	switch {
	case a.auth.ApplicationCredentialID != "" || a.auth.ApplicationCredentialName != "":
	case v["trust-id"] != "":
		a.auth.Scope = &gophercloud.AuthScope{TrustID: v["trust-id"]}
	case v["tenant-id"] != "":
		a.auth.Scope = &gophercloud.AuthScope{ProjectID: v["tenant-id"]}
	case v["tenant-name"] != "":
		a.auth.Scope = &gophercloud.AuthScope{ProjectName: v["tenant-name"], DomainID: first(v["tenant-domain-id"], v["user-domain-id"], v["domain-id"])}
		if a.auth.Scope.DomainID == "" {
			a.auth.Scope.DomainName = first(v["tenant-domain-name"], v["user-domain-name"], v["domain-name"])
		}
	}
	if err := complete(a.auth); err != nil {
		return a, err
	}
	var err error
	a.tls, err = trust(v["ca-file"], v["tls-insecure"])
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

func availability(s string) gophercloud.Availability {
	switch strings.TrimSuffix(s, "URL") {
	case "internal":
		return gophercloud.AvailabilityInternal
	case "admin":
		return gophercloud.AvailabilityAdmin
	}
	return gophercloud.AvailabilityPublic
}

// trust is the TLS configuration for a CA file, nil for the system's own.
func trust(file, insecure string) (*tls.Config, error) {
	skip, _ := strconv.ParseBool(insecure)
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
