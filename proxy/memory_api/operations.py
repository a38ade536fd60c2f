"""All operations of the memory API, in the order of the document."""

from __future__ import annotations

from functools import cache

from starlette.responses import Response

from proxy.memory_api.api import Api
from proxy.memory_api.conversations.branches import activate_message, fork_session, rewind_session
from proxy.memory_api.conversations.exchanges import get_exchange, list_exchanges, preview_context
from proxy.memory_api.conversations.message_edit import delete_message, get_message, update_message
from proxy.memory_api.conversations.messages import import_messages, list_messages
from proxy.memory_api.conversations.session_edit import (
    list_summaries,
    rebuild_summary,
    update_session,
)
from proxy.memory_api.conversations.sessions import get_session, list_sessions
from proxy.memory_api.erasure.routes import delete_session, delete_user
from proxy.memory_api.items.items import (
    delete_item,
    get_item,
    list_namespaces,
    put_item,
    search_items,
)
from proxy.memory_api.objects import HEADERS, encoded
from proxy.memory_api.openapi.document import DocumentOptions, document, document_options
from proxy.memory_api.openapi.operation import Operation
from proxy.memory_api.operation import operation
from proxy.memory_api.overview.callers import list_tenants, who_am_i
from proxy.memory_api.overview.stats import get_stats
from proxy.memory_api.overview.usage import get_usage
from proxy.memory_api.people.feedback import get_feedback, send_feedback
from proxy.memory_api.people.instructions import (
    approve_proposal,
    get_instructions,
    list_instructions_versions,
    list_proposals,
    reflect_on_feedback,
    reject_proposal,
    roll_back_instructions,
    set_instructions,
)
from proxy.memory_api.people.people import forget_learned, get_user, list_users
from proxy.memory_api.people.profiles import (
    get_profile,
    list_profile_versions,
    roll_back_profile,
    update_profile,
)
from proxy.memory_api.people.users import (
    create_memory,
    delete_memory,
    get_memory,
    list_memories,
    search_memories,
    update_memory,
)
from proxy.memory_api.transfer.export import export_all, export_session, export_user
from proxy.memory_api.transfer.import_route import import_file


@operation("GET", "/memory/v1/openapi.json", "Overview", answer={"type": "object"}, open=True)
async def get_open_api(api: Api) -> Response:
    """Get this document."""
    return Response(_encoded(document_options(api.settings)), headers=HEADERS)


OPERATIONS: tuple[Operation, ...] = (
    # fmt: off
    list_sessions,
    get_session,
    update_session,
    delete_session,
    fork_session,
    rewind_session,
    preview_context,
    list_summaries,
    rebuild_summary,
    forget_learned,
    export_session,
    list_messages,
    import_messages,
    get_message,
    update_message,
    delete_message,
    activate_message,
    get_feedback,
    send_feedback,
    list_exchanges,
    get_exchange,
    list_users,
    get_user,
    delete_user,
    export_user,
    list_memories,
    create_memory,
    search_memories,
    get_memory,
    update_memory,
    delete_memory,
    get_profile,
    update_profile,
    list_profile_versions,
    roll_back_profile,
    get_instructions,
    set_instructions,
    list_instructions_versions,
    roll_back_instructions,
    list_proposals,
    approve_proposal,
    reject_proposal,
    reflect_on_feedback,
    put_item,
    get_item,
    delete_item,
    search_items,
    list_namespaces,
    export_all,
    import_file,
    get_stats,
    get_usage,
    who_am_i,
    list_tenants,
    get_open_api,
    # fmt: on
)


@cache
def _encoded(options: DocumentOptions) -> bytes:
    """Made once, when somebody asks: it changes with the configuration alone."""
    return encoded(document(options, OPERATIONS))
