package starter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/todoku/todoku/workflows"
)

// AttributesError says that the namespace has not the search attributes that workflows start with, as far as it may
// be asked, and how to create them.
type AttributesError struct {
	// Unknown means that nobody may ask here, as on Temporal Cloud. They may all be there.
	Unknown bool

	missing   []string
	wrongType []string
	namespace string
}

func (e *AttributesError) Error() string {
	switch {
	case e.Unknown:
		return "the search attributes of the namespace may not be listed here: if no workflow starts, create them: " +
			e.create(slices.Sorted(maps.Keys(workflows.SearchAttributes)))
	case len(e.wrongType) > 0:
		return fmt.Sprintf("the namespace has search attributes of another type (%s), so that no workflow would start: remove them with "+
			"`temporal operator search-attribute remove`, and create them: %s", strings.Join(e.wrongType, ", "), e.create(e.wrongType))
	}
	return "the namespace lacks search attributes, and they may not be added from here: create them: " + e.create(e.missing)
}

// create is the command that creates the attributes.
func (e *AttributesError) create(names []string) string {
	var command strings.Builder
	fmt.Fprintf(&command, "`temporal operator search-attribute create --namespace %s", e.namespace)
	for _, name := range names {
		fmt.Fprintf(&command, " --name %s --type %s", name, workflows.SearchAttributes[name])
	}
	return command.String() + "`"
}

// EnsureSearchAttributes creates those of our search attributes that the namespace lacks. The error is an
// *AttributesError when they are not there, or when it may not be asked whether they are.
func (s *Starter) EnsureSearchAttributes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	operator := s.client.OperatorService()
	have, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: s.namespace})
	switch {
	case notPermitted(err):
		return &AttributesError{Unknown: true, namespace: s.namespace}
	case err != nil:
		return fmt.Errorf("list search attributes: %w", err)
	}
	lacking := make(map[string]enums.IndexedValueType)
	found := &AttributesError{namespace: s.namespace}
	for _, name := range slices.Sorted(maps.Keys(workflows.SearchAttributes)) {
		want := workflows.SearchAttributes[name]
		kind, has := have.CustomAttributes[name]
		switch {
		case !has:
			lacking[name] = want
			found.missing = append(found.missing, name)
		case kind != want:
			found.wrongType = append(found.wrongType, name)
		}
	}
	if len(lacking) > 0 {
		_, err = operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: s.namespace, SearchAttributes: lacking})
		_, raced := errors.AsType[*serviceerror.AlreadyExists](err)
		switch {
		case notPermitted(err):
			return found
		case err != nil && !raced:
			return fmt.Errorf("add search attributes: %w", err)
		}
	}
	if len(found.wrongType) > 0 {
		return found
	}
	return nil
}

// notPermitted reports whether Temporal answers, and this client may not do what it asked for.
func notPermitted(err error) bool {
	_, denied := errors.AsType[*serviceerror.PermissionDenied](err)
	_, unimplemented := errors.AsType[*serviceerror.Unimplemented](err)
	return denied || unimplemented
}
