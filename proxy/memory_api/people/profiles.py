"""A person's profile: get it, change it, roll it back."""

from __future__ import annotations

from typing import Annotated, Any

from proxy.chat.jsontext import UNREADABLE, decode_shallow
from proxy.learning.profile.document import MAX_BYTES, PatchError, Schema, Version, patch_of_merge
from proxy.learning.profile.store import Check, NoVersion, Patching, StoredProfile
from proxy.memory_api.api import Api
from proxy.memory_api.call import Call, FromRequest, RequestConditions
from proxy.memory_api.conditions import Conditions
from proxy.memory_api.errors import unknown_profile, version_not_found
from proxy.memory_api.fields import invalid
from proxy.memory_api.objects import source_object
from proxy.memory_api.openapi.operation import JSON, Body, Link, Parameter, ref
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import AfterSeq, Limit, PersonAt
from proxy.memory_api.people.memories import as_item_owner
from proxy.memory_api.people.people import BY_PATH
from proxy.memory_api.people.people import ONE as PERSON
from proxy.memory_api.shapes.people import (
    PatchOperation,
    Profile,
    ProfileVersion,
    ProfileVersionList,
    Rollback,
)

JSON_PATCH = "application/json-patch+json"

MAX_PATCH_BYTES = 4 * MAX_BYTES
"""Bytes: a patch may test and replace every value."""

TAG = "Profiles"
ONE = f"{PERSON}/profile"

CHANGE = Body(
    {
        JSON: {"type": "object"},
        "application/merge-patch+json": {"type": "object"},
        JSON_PATCH: {"type": "array", "items": ref(PatchOperation)},
    },
    examples={"city": {"city": "Lisbon"}},
)


def _schema(call: Call) -> Schema:
    name = call.request.query_params.get("profile")
    settings = call.api.settings.profile(name or "")
    if settings is None or name == "":
        raise unknown_profile()
    return call.api.learned.schemas.of(settings.profile.schema)


async def _patching(call: Call) -> Patching:
    body = await call.body()
    if len(body) > MAX_PATCH_BYTES:
        raise invalid(f"A patch must not be larger than {MAX_PATCH_BYTES} bytes.")
    kind = call.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    change = _decoded(body)
    if kind == JSON_PATCH:
        if not isinstance(change, list):
            raise invalid("A JSON Patch must be a list of operations.")
        return lambda document: change
    if not isinstance(change, dict):
        raise invalid(f"The body must be an object, or with {JSON_PATCH} a list.")
    return lambda document: patch_of_merge(document, change)


SchemaOf = Annotated[
    Schema,
    Parameter(
        "profile",
        "query",
        "The profile of the configuration with the schema.",
        read=_schema,
        errors=(unknown_profile,),
    ),
]


@operation("GET", ONE, TAG)
async def get_profile(api: Api, person: PersonAt) -> Profile:
    """Get a person's profile.

    An empty document where nothing is known.
    """
    owner = as_item_owner(person)
    return profile_object(owner.user, await api.learned.profiles.current(owner))


@operation(
    "PATCH",
    ONE,
    TAG,
    body=CHANGE,
    creates_tenant=True,
    links=(Link("getProfile", BY_PATH), Link("listProfileVersions", BY_PATH)),
)
async def update_profile(
    api: Api,
    person: PersonAt,
    schema: SchemaOf,
    change: Annotated[Patching, FromRequest(_patching)],
    conditions: RequestConditions,
) -> Profile:
    """Change a person's profile.

    A JSON Merge Patch (RFC 7396), or with its content type a JSON Patch (RFC 6902); all of it or
    nothing. The document has to fit the operator's schema.
    """
    owner = as_item_owner(person)
    try:
        stored = await api.learned.profiles.edit(
            owner, change, schema, _check(conditions, owner.user)
        )
    except PatchError as error:
        raise invalid(f"The profile stays as it is: {error}", error.path) from None
    return profile_object(owner.user, stored)


@operation(
    "GET",
    f"{ONE}/versions",
    TAG,
    links=(Link("rollBackProfile", BY_PATH, {"version": "$response.body#/data/0/version"}),),
)
async def list_profile_versions(
    api: Api, person: PersonAt, limit: Limit, after: AfterSeq
) -> ProfileVersionList:
    """List the versions of a profile.

    By number, ascending.
    """
    page = await api.learned.profiles.versions(as_item_owner(person), after, limit)
    return ProfileVersionList.part([version_object(each) for each in page.items], page.after)


@operation(
    "POST", f"{ONE}/rollback", TAG, examples={"first": {"version": 1}}, errors=(version_not_found,)
)
async def roll_back_profile(
    api: Api, person: PersonAt, back: Rollback, conditions: RequestConditions
) -> Profile:
    """Put a profile back to an earlier version.

    That document once more, as a new version.
    """
    owner, check = as_item_owner(person), _check(conditions, person.user)
    try:
        stored = await api.learned.profiles.roll_back(owner, back.version, check)
    except NoVersion:
        raise version_not_found() from None
    return profile_object(owner.user, stored)


def _check(conditions: Conditions, user: str) -> Check:
    """A check that raises ProxyError if the conditions do not hold."""
    return lambda stored: conditions.check(profile_object(user, stored))


def _decoded(body: bytes) -> Any:
    try:
        return decode_shallow(body)
    except UNREADABLE:
        raise invalid("The body must be JSON that is not nested too deeply.") from None


def profile_object(user: str, stored: StoredProfile) -> Profile:
    return Profile(
        user_id=user,
        document=stored.value.document,
        version=stored.value.version,
        updated_at=stored.updated_at,
    )


def version_object(version: Version) -> ProfileVersion:
    return ProfileVersion(
        version=version.version,
        document=version.document,
        patch=version.patch,
        origin=version.origin,
        sources=[source_object(source) for source in version.all_sources],
        rolled_back_to=version.rolled_back_to,
        created_at=version.created_at,
    )
