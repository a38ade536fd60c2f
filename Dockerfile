# syntax=docker/dockerfile:1
# Nothing here is secret: the tokens are those of texts.
# hadolint global ignore=DL3064

ARG PYTHON_IMAGE=python:3.12.12-slim-bookworm

FROM ${PYTHON_IMAGE} AS builder
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# No version lasts longer than the index of the day.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends binutils
RUN python -m venv --without-pip /opt/memory-proxy
WORKDIR /src
# The very files that were tried, by their hashes: `make lock`.
COPY config/container/requirements.txt ./
RUN pip --python /opt/memory-proxy/bin/python install --require-hashes --no-deps -r requirements.txt
COPY pyproject.toml memory_proxy.py README.md LICENSE ./
COPY proxy ./proxy
COPY config/proxy.toml ./config/proxy.toml
RUN pip --python /opt/memory-proxy/bin/python install --no-deps .
# What debuggers and packages' own tests need is two fifths of it; numpy's libraries do not survive.
RUN find /opt/memory-proxy -name '*.so' -not -path '*.libs/*' -exec strip --strip-unneeded {} + \
 && find /opt/memory-proxy/lib -type d -name tests -prune -exec rm -r {} +
ENV PATH=/opt/memory-proxy/bin:$PATH
# The table of current models is fetched here, that of all others comes with a package: the proxy
# itself downloads nothing.  Without both the build fails, unless TOKEN_TABLES=optional says that an
# estimate will do.
ARG TOKEN_TABLES=required
ENV TIKTOKEN_CACHE_DIR=/opt/memory-proxy/share/tiktoken
RUN mkdir -p "$TIKTOKEN_CACHE_DIR" && \
 if ! { python -c "import tiktoken; tiktoken.get_encoding('o200k_base')" \
 && python -c "from proxy.chat.models.tokens import Tokenizers; assert len(Tokenizers().warm()) == 2"; }; \
 then [ "$TOKEN_TABLES" = optional ]; fi

FROM ${PYTHON_IMAGE}
COPY --from=builder /opt/memory-proxy /opt/memory-proxy
# What is different in a container, below all that is said elsewhere; and the file to mount over.
COPY config/container/defaults.toml /opt/memory-proxy/share/defaults.toml
COPY config/container/proxy.toml /etc/memory-proxy/proxy.toml
COPY config/proxy.toml /etc/memory-proxy/every-setting.toml
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin memory-proxy \
 && install --directory --owner=memory-proxy --group=memory-proxy --mode=0700 /data
ENV PATH=/opt/memory-proxy/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TIKTOKEN_CACHE_DIR=/opt/memory-proxy/share/tiktoken \
    MEMORY_PROXY_DEFAULTS=/opt/memory-proxy/share/defaults.toml \
    MEMORY_PROXY_CONFIG=/etc/memory-proxy/proxy.toml
# By number, so that an orchestrator knows that it is not root.
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
# The address is in a file (server.address_file), wherever the port was set.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["python", "-c", "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open(open('/tmp/memory-proxy.address').read() + '/healthz', timeout=2)"]
# Longer than server.shutdown_timeout must be the patience of whoever stops the container.
STOPSIGNAL SIGTERM
ENTRYPOINT ["memory-proxy"]
CMD ["serve"]
