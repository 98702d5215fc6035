package clients

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/autoscaler-agent/autoscaler-agent/internal/textfile"
)

// mostKubeconfig is more than any kubeconfig has.
const mostKubeconfig = 4 << 20

// fromFile reads a kubeconfig once, checks it and uses it. The checks come first: client-go accepts
// some faults without a word, such as a user that the file does not have, and tells others in words
// that name no file.
func fromFile(path string) (*rest.Config, error) {
	data, err := textfile.Read(path, mostKubeconfig)
	if err != nil {
		return nil, err
	}
	raw, err := clientcmd.Load(data)
	if err != nil {
		return nil, err
	}
	if err := judge(raw); err != nil {
		return nil, err
	}
	// Paths of certificates and commands are relative to the file.
	for _, c := range raw.Clusters {
		c.LocationOfOrigin = path
	}
	for _, user := range raw.AuthInfos {
		user.LocationOfOrigin = path
	}
	if err := clientcmd.ResolveLocalPaths(raw); err != nil {
		return nil, err
	}
	return clientcmd.BuildConfigFromKubeconfigGetter("", func() (*api.Config, error) { return raw, nil })
}

// judge says what a kubeconfig lacks.
func judge(raw *api.Config) error {
	if len(raw.Clusters) == 0 && len(raw.Contexts) == 0 {
		return errors.New("it is empty: it has neither clusters nor contexts")
	}
	if raw.CurrentContext == "" {
		return errors.New("it has no current-context")
	}
	context := raw.Contexts[raw.CurrentContext]
	if context == nil {
		return fmt.Errorf("current-context is %q, and contexts has no such entry", raw.CurrentContext)
	}
	cluster := raw.Clusters[context.Cluster]
	if cluster == nil {
		return fmt.Errorf("the context %q names the cluster %q, and clusters has no such entry", raw.CurrentContext, context.Cluster)
	}
	if _, there := raw.AuthInfos[context.AuthInfo]; !there && context.AuthInfo != "" {
		return fmt.Errorf("the context %q names the user %q, and users has no such entry", raw.CurrentContext, context.AuthInfo)
	}
	address := cluster.Server
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	if at, err := url.Parse(address); err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" {
		return fmt.Errorf("server of the cluster %q is %q: write https://HOST:PORT", context.Cluster, cluster.Server)
	}
	if ca := cluster.CertificateAuthorityData; len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return fmt.Errorf("certificate-authority-data of the cluster %q holds no certificate", context.Cluster)
	}
	return nil
}
