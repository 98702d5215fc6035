"""A Cinder driver whose volumes are rows of Cinder's database and nothing else, as the
servers of Nova's fake driver are rows of Nova's.

cinder-volume loads it by its configuration. Everything about it (API, scheduler, messages,
quota, attachments, database) is Cinder's own.
"""
from cinder.volume import driver


class Driver(driver.VolumeDriver):
    def check_for_setup_error(self):
        pass

    def create_volume(self, volume):
        pass

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        return {}, True   # nothing is copied

    def delete_volume(self, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def ensure_export(self, context, volume):
        pass

    def remove_export(self, context, volume):
        pass

    def initialize_connection(self, volume, connector):
        return {'driver_volume_type': 'e2e', 'data': {'access_mode': 'rw'}}

    def terminate_connection(self, volume, connector, **kwargs):
        pass

    def _update_volume_stats(self):
        self._stats = {'volume_backend_name': 'e2e', 'vendor_name': 'e2e', 'driver_version': '1', 'storage_protocol': 'e2e',
                       'total_capacity_gb': 'infinite', 'free_capacity_gb': 'infinite', 'reserved_percentage': 0}
