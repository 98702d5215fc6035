package install

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

const (
	kubeconfigFile = configDir + "/kubeconfig"
	// clientFile holds certificate and key in one file, so that a renewal replaces both at
	// once. client-go reads it again while the agent runs.
	clientFile = configDir + "/client.pem"
	// yearOfSeconds is the lifetime of the certificate; the signer may give less.
	yearOfSeconds = 365 * 24 * 3600
	// signedWithin bounds the wait for kube-controller-manager's signer.
	signedWithin = 30 * time.Second
)

// credential are the steps to the agent's own kubeconfig.
func (h Host) credential(admin *rest.Config, client *kube.Client, now time.Time) ([]Step, error) {
	kubeconfig, err := h.kubeconfig(admin)
	if err != nil {
		return nil, err
	}
	steps := []Step{h.certificate(client, admin, now)}
	return append(steps, h.write("kubeconfig", kubeconfigFile, kubeconfig, 0o640)), nil
}

// certificate is the step to a client certificate that is good for a third of its lifetime
// or more.
func (h Host) certificate(client *kube.Client, admin *rest.Config, now time.Time) Step {
	const about = "certificate"
	why := "there is none"
	if data, err := os.ReadFile(h.path(clientFile)); err == nil {
		var end time.Time
		if end, why = usable(data, admin, now); why == "" {
			return present(about, "%s is good until %s", clientFile, end.UTC().Format(time.DateOnly))
		}
	}
	return change(about, "have the cluster sign a client certificate for the user "+User+", for a year ("+why+")", func(ctx context.Context) error {
		data, err := sign(ctx, client)
		if err != nil {
			return err
		}
		if _, err := atomicfile.Write(h.path(clientFile), data, 0o640); err != nil {
			return err
		}
		return h.own(clientFile)
	})
}

// usable says why a certificate with its key has to be replaced; empty: it has not.
func usable(data []byte, admin *rest.Config, now time.Time) (end time.Time, why string) {
	block, rest := pem.Decode(data)
	if block == nil {
		return end, "the file holds none"
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if key, _ := pem.Decode(rest); err != nil || key == nil {
		return end, "the file is damaged"
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(admin.CAData)
	_, err = c.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	switch left := c.NotAfter.Sub(now); {
	case c.Subject.CommonName != User:
		return c.NotAfter, "it is for another user"
	case left < c.NotAfter.Sub(c.NotBefore)/3:
		return c.NotAfter, "it ends on " + c.NotAfter.UTC().Format(time.DateOnly)
	case err != nil:
		return c.NotAfter, "this cluster did not sign it"
	}
	return c.NotAfter, ""
}

// sign has the cluster sign a new key, and returns the certificate with the key.
func sign(ctx context.Context, client *kube.Client) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, signedWithin, errors.New("the certificate was not signed in time: see that kube-controller-manager runs with --cluster-signing-cert-file (crictl ps)"))
	defer cancel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	keyDER, err1 := x509.MarshalECPrivateKey(key)
	request, err2 := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: User}}, key)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	api, life := client.CertificatesV1().CertificateSigningRequests(), int32(yearOfSeconds)
	csr, err := api.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: User + "-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName, ExpirationSeconds: &life,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, err
	}
	defer func() { // a request that was answered has no further use
		_ = api.Delete(context.WithoutCancel(ctx), csr.Name, metav1.DeleteOptions{})
	}()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoscalerAgentInstall", Message: "autoscaler-agent install made this request"})
	if csr, err = api.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return nil, err
	}
	certificate, err := signed(ctx, client, csr)
	if err != nil {
		return nil, err
	}
	return append(bytes.TrimRight(certificate, "\n"), append([]byte("\n"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})...)...), nil
}

// signed waits for the certificate of an approved request.
func signed(ctx context.Context, client *kube.Client, csr *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	watch, err := client.CertificatesV1().CertificateSigningRequests().Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", csr.Name).String(), ResourceVersion: csr.ResourceVersion})
	if err != nil {
		return nil, err
	}
	defer watch.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case e, ok := <-watch.ResultChan():
			if !ok {
				return nil, errors.Join(errors.New("the watch for the certificate ended"), context.Cause(ctx))
			}
			now, is := e.Object.(*certificatesv1.CertificateSigningRequest)
			if !is {
				continue
			}
			if len(now.Status.Certificate) > 0 {
				return now.Status.Certificate, nil
			}
			for _, c := range now.Status.Conditions {
				if c.Type == certificatesv1.CertificateFailed || c.Type == certificatesv1.CertificateDenied {
					return nil, fmt.Errorf("the cluster did not sign: %s: %s", c.Reason, c.Message)
				}
			}
		}
	}
}

// kubeconfig is the agent's, with the server and the authority of admin.conf.
func (h Host) kubeconfig(admin *rest.Config) ([]byte, error) {
	c := clientcmdapi.NewConfig()
	c.Clusters["kubernetes"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData, TLSServerName: admin.ServerName}
	c.AuthInfos[User] = &clientcmdapi.AuthInfo{ClientCertificate: clientFile, ClientKey: clientFile}
	c.Contexts[User] = &clientcmdapi.Context{Cluster: "kubernetes", AuthInfo: User}
	c.CurrentContext = User
	return clientcmd.Write(*c)
}
