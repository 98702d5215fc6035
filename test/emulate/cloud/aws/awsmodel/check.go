package awsmodel

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Answer is one answer as it went over the wire.
type Answer struct {
	Service, Action string
	Status          int
	ContentType     string
	Body            []byte
}

// Check returns everything in which an answer differs from the model, nil if
// nothing does. Answers to actions that do not exist must be errors.
func (m Models) Check(a Answer) error {
	api := m[a.Service]
	if api == nil {
		return fmt.Errorf("check %s:%s: no model of this service", a.Service, a.Action)
	}
	c := &checker{api: api}
	op, known := api.Operations[a.Action]
	switch {
	case a.Status >= 300:
		c.failure(a, op, known)
	case !known:
		c.wrong("", "a success of an action that does not exist")
	case api.Metadata.Protocol == "json":
		c.json(a, op)
	default:
		c.xml(a, op)
	}
	if len(c.problems) == 0 {
		return nil
	}
	return fmt.Errorf("check %s:%s: %w", a.Service, a.Action, errors.Join(c.problems...))
}

type checker struct {
	api      *model
	problems []error
}

func (c *checker) wrong(path, format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf("%s: "+format, append([]any{path}, args...)...))
}

var timestamp = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$`)

var numbers = map[string]*regexp.Regexp{
	"integer": regexp.MustCompile(`^-?\d+$`),
	"long":    regexp.MustCompile(`^-?\d+$`),
	"float":   regexp.MustCompile(`^-?\d+(\.\d+)?$`),
	"double":  regexp.MustCompile(`^-?\d+(\.\d+)?$`),
	"boolean": regexp.MustCompile(`^(true|false)$`),
}

// scalar checks the text of an XML element.
func (c *checker) scalar(path, text string, s *shape) {
	switch {
	case s.Type == "timestamp":
		if !timestamp.MatchString(text) {
			c.wrong(path, "%q is not a timestamp", text)
		}
	case numbers[s.Type] != nil:
		if !numbers[s.Type].MatchString(text) {
			c.wrong(path, "%q is no %s", text, s.Type)
		}
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, text):
		c.wrong(path, "%q is not among the values of its enum", text)
	}
}

// common lists the error codes that any action of a service may answer with,
// from AWS's "Common Errors" pages. EC2's model names no errors at all, so its
// codes are checked by form only.
var common = map[string][]string{
	"autoscaling": queryErrors,
	"sts":         queryErrors,
	"iam":         queryErrors,
	"ssm": {"AccessDeniedException", "ExpiredTokenException", "InvalidSignatureException", "MissingAuthenticationTokenException",
		"SerializationException", "ServiceUnavailable", "ThrottlingException", "UnknownOperationException", "UnrecognizedClientException", "ValidationException"},
}

var queryErrors = []string{"AccessDenied", "ExpiredToken", "InternalFailure", "InvalidAction", "InvalidClientTokenId", "InvalidParameterValue",
	"MissingAuthenticationToken", "ServiceUnavailable", "SignatureDoesNotMatch", "Throttling", "UnsupportedOperation", "ValidationError"}

var ec2Code = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+(\.[A-Z][A-Za-z0-9]+)*$`)

func (c *checker) code(service, code string, op operation, known bool) {
	if service == "ec2" {
		if !ec2Code.MatchString(code) {
			c.wrong("Code", "%q is no error code", code)
		}
		return
	}
	if slices.Contains(common[service], code) {
		return
	}
	if known {
		for _, e := range op.Errors {
			s := c.api.Shapes[e.Shape]
			if code == e.Shape || s.Error != nil && s.Error.Code == code {
				return
			}
		}
	}
	c.wrong("Code", "the action knows no error %q", code)
}

func (c *checker) failure(a Answer, op operation, known bool) {
	if c.api.Metadata.Protocol == "json" {
		c.jsonFailure(a, op, known)
		return
	}
	root, err := parse(a.Body)
	if err != nil {
		c.wrong("", "%v", err)
		return
	}
	code := ""
	if c.api.Metadata.Protocol == "ec2" {
		c.exactly(root, "Response", "Errors", "RequestID")
		if e := root.only("Errors"); e != nil {
			c.exactly(e, "Errors", "Error")
			if e = e.only("Error"); e != nil {
				c.exactly(e, "Error", "Code", "Message")
				code = e.text("Code")
			}
		}
	} else {
		c.exactly(root, "ErrorResponse", "Error", "RequestId")
		if e := root.only("Error"); e != nil {
			c.exactly(e, "Error", "Type", "Code", "Message")
			code = e.text("Code")
			if want := map[bool]string{true: "Sender", false: "Receiver"}[a.Status < 500]; e.text("Type") != want {
				c.wrong("Type", "is %q, not %s", e.text("Type"), want)
			}
		}
		c.namespace(root)
	}
	c.code(a.Service, code, op, known)
}

// exactly checks an element's name and that it has these children and no
// others.
func (c *checker) exactly(e *element, name string, kids ...string) {
	if e.name != name {
		c.wrong(e.name, "the element should be %s", name)
	}
	for _, k := range kids {
		if e.only(k) == nil {
			c.wrong(name, "has no element %s, or several", k)
		}
	}
	for _, k := range e.kids {
		if !slices.Contains(kids, k.name) {
			c.wrong(name, "unknown element %s", k.name)
		}
	}
}

func (c *checker) namespace(root *element) {
	if strings.TrimSuffix(root.space, "/") != strings.TrimSuffix(c.api.Metadata.XMLNamespace, "/") {
		c.wrong(root.name, "namespace %q is not %q", root.space, c.api.Metadata.XMLNamespace)
	}
}
