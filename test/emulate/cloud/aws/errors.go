package aws

import (
	"encoding/json"
	"net/http"
)

// apiError is an error as a caller sees it.
type apiError struct {
	code, message string
	status        int
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

// fail is a caller's mistake: status 400.
func fail(code, message string) *apiError { return &apiError{code, message, http.StatusBadRequest} }

const (
	notValidated = "AWS was not able to validate the provided access credentials"
	badToken     = "The security token included in the request is invalid."
	expiredToken = "The security token included in the request is expired"
	badSignature = "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details."
)

// authError words an authentication problem as the service does. EC2 still
// answers most of them with the AuthFailure of its own old front end; the
// JSON services answer with status 400 and names that end in Exception.
func authError(service string, p authProblem, detail string) *apiError {
	if detail == "" {
		detail = badSignature
	}
	switch {
	case service == "ec2":
		switch p {
		case authExpired:
			return fail("RequestExpired", "Request has expired.")
		case authSkewed:
			return &apiError{"RequestExpired", "Request has expired.", http.StatusBadRequest}
		case authMissing:
			return &apiError{"MissingAuthenticationToken", "Request is missing Authentication Token", http.StatusForbidden}
		}
		return &apiError{"AuthFailure", notValidated, http.StatusUnauthorized}
	case speaksJSON(service):
		switch p {
		case authExpired:
			return fail("ExpiredTokenException", expiredToken)
		case authMissing:
			return fail("MissingAuthenticationTokenException", "Missing Authentication Token")
		case authUnknownKey, authBadToken:
			return fail("UnrecognizedClientException", badToken)
		}
		return fail("InvalidSignatureException", detail)
	}
	code := "SignatureDoesNotMatch"
	switch p {
	case authExpired:
		code, detail = "ExpiredToken", expiredToken
	case authMissing:
		code, detail = "MissingAuthenticationToken", "Request is missing Authentication Token"
	case authUnknownKey, authBadToken:
		code, detail = "InvalidClientTokenId", badToken
	}
	return &apiError{code, detail, http.StatusForbidden}
}

// unknownAction is how each service answers an action that does not exist.
func unknownAction(service, action, version string) *apiError {
	switch {
	case service == "ec2":
		return fail("InvalidAction", "The action "+action+" is not valid for this web service.")
	case speaksJSON(service):
		return fail("UnknownOperationException", "")
	}
	return fail("InvalidAction", "Could not find operation "+action+" for version "+version)
}

// encodeError renders an error in the service's envelope.
func encodeError(service string, e *apiError, requestID string) (contentType string, body []byte) {
	switch {
	case service == "ec2":
		return xmlType, x("Response",
			x("Errors", x("Error", x("Code", e.code), x("Message", e.message))),
			x("RequestID", requestID)).document("")
	case speaksJSON(service):
		out := map[string]string{"__type": e.code}
		if e.message != "" {
			out["message"] = e.message
		}
		body, _ = json.Marshal(out)
		return jsonType, body
	}
	kind := "Sender"
	if e.status >= 500 {
		kind = "Receiver"
	}
	return xmlType, x("ErrorResponse",
		x("Error", x("Type", kind), x("Code", e.code), x("Message", e.message)),
		x("RequestId", requestID)).document(services[service].namespace)
}
