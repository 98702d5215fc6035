// Package apierror explains in an operator's words why the API server could not be used,
// and what to do about it. Explain returns both; Text joins them.
//
// It refuses to guess: an error of an unknown kind is returned as it is written, without
// a remedy.
package apierror

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Explain says why the API server could not be used, and what to do about it ("": not
// known). The text leaves out the request that failed, so that many requests with one
// cause have equal texts.
func Explain(err error) (text, remedy string) {
	const renew = "make the agent's kubeconfig anew: docs/install.md section 3 (autoscaler-agent install)"
	var (
		unknownCA x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		op        *net.OpError
		dns       *net.DNSError
		request   *url.Error
	)
	switch {
	case apierrors.IsUnauthorized(err):
		return "the API server does not accept the kubeconfig's credentials (has the client certificate expired?)", renew
	case apierrors.IsForbidden(err):
		return err.Error(), "kubectl apply -f rbac.yaml"
	case errors.As(err, &unknownCA):
		return "the API server's certificate is not signed by the kubeconfig's certificate authority", renew
	case errors.As(err, &name):
		return "the API server's certificate is for another name: " + name.Error(), "correct `server` in the kubeconfig to a name of the certificate"
	case errors.As(err, &invalid):
		return "the API server's certificate is not valid: " + invalid.Error(), "kubeadm certs renew apiserver, and look at this machine's clock"
	case errors.As(err, &dns):
		return "the API server's name is not known: " + dns.Name, "correct `server` in the kubeconfig, or this machine's DNS"
	case errors.As(err, &op):
		where := ""
		if op.Addr != nil {
			where = " at " + op.Addr.String()
		}
		return "the API server" + where + " does not answer: " + op.Err.Error(), "see that kube-apiserver runs (crictl ps), and correct `server` in the kubeconfig"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the API server does not answer in time", "see that kube-apiserver and etcd run and are not overloaded"
	case errors.As(err, &request):
		return "the API server does not answer: " + request.Err.Error(), ""
	}
	return err.Error(), ""
}

// Text is the text and the remedy of Explain in one sentence.
func Text(err error) string {
	text, remedy := Explain(err)
	if remedy != "" {
		text += " (" + remedy + ")"
	}
	return text
}
